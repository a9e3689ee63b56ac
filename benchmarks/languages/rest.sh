# What sqlite3 runs at its end if REST is set: waits two seconds, and prints how many KiB of the caller are resident.
sleep 2
awk '{ print $2 * 4 }' "/proc/$PPID/statm"
