# Linear models on resampled data, by hand and by lm.
source(sub("--file=(.*/)?[^/]*$", "\\1rest.R", grep("^--file=", commandArgs(), value = TRUE)))
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
