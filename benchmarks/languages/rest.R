# What a program does at its end if REST is set: waits two seconds, and prints how many KiB are resident.
rest <- function() {
  if (Sys.getenv("REST") == "") return(invisible())
  invisible(gc())
  Sys.sleep(2)
  cat(as.numeric(strsplit(readLines("/proc/self/statm"), " ")[[1]][2]) * 4, "\n")
}
