% Sharpens pictures of several sizes, and takes their histograms.
1;  % a script

function total = work()
  total = 0;
  kernel = [1 2 1; 2 4 2; 1 2 1] / 16;
  for turn = 1:8
    n = 600 + 100 * mod(turn, 4);
    picture = mod(reshape(1:n * n, n, n) * 7919, 256) / 256;
    smooth = conv2(picture, kernel, "same");
    sharp = min(max(2 * picture - smooth, 0), 1);
    counts = histc(floor(sharp(:) * 255), 0:255);
    total = total + sum(counts .* (1:256)') + sum(abs(fft2(sharp))(:)) / n;
  end
end

printf("%.6f\n", work());
rest();
