# Linear models on resampled data, by hand and by lm.
rest <- function() {
  if (Sys.getenv("REST") == "") return(invisible())
  invisible(gc())
  Sys.sleep(2)
  cat(as.numeric(strsplit(readLines("/proc/self/statm"), " ")[[1]][2]) * 4, "\n")
}
work <- function() {
  set.seed(1)
  n <- 60000
  x <- matrix(rnorm(n * 6), n)
  y <- x %*% 1:6 + rnorm(n)
  total <- 0
  for (turn in 1:12) {
    rows <- sample(n, n, replace = TRUE)
    a <- x[rows, ]
    b <- y[rows]
    fitted <- a %*% solve(crossprod(a), crossprod(a, b))
    residuals <- (b - fitted)^2
    total <- total + sum(residuals) + mean(exp(-abs(a)))
  }
  total + sum(coef(lm(y ~ x)))
}
cat(format(work(), digits = 10), "\n")
rest()
