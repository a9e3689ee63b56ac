# Groups, orders and merges data frames of 200,000 rows.
source(sub("--file=(.*/)?[^/]*$", "\\1rest.R", grep("^--file=", commandArgs(), value = TRUE)))
work <- function() {
  n <- 200000
  frame <- data.frame(key = (1:n * 7919) %% 1009, value = sqrt(1:n), other = (1:n * 31) %% 97)
  total <- 0
  for (turn in 1:6) {
    ordered <- frame[order(frame$other, frame$value), ]
    sums <- rowsum(ordered$value, ordered$key)
    kept <- ordered[ordered$value > median(ordered$value), ]
    kept$scaled <- (kept$value - mean(kept$value)) / sd(kept$value)
    total <- total + sum(sums) + sum(kept$scaled * cumsum(kept$other))
  }
  total
}
cat(format(work(), digits = 10), "\n")
rest()
