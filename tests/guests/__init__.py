"""Virtual machines that tests boot with qemu: kernels, first file systems, and the programs that run there."""
