//! Contents that identify their block: every page of a block differs from every page of every other.

const PAGE: usize = 4096;

fn mixed(mut n: u64) -> u64 {
    n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

fn page(seed: u64) -> [u8; PAGE] {
    let mut page = [0; PAGE];
    for (index, word) in page.chunks_exact_mut(8).enumerate() {
        // Never a zero byte: memory that reads zero is never taken for a pattern.
        let value = mixed(seed.wrapping_mul(1 << 9).wrapping_add(index as u64)) | 0x0101_0101_0101_0101;
        word.copy_from_slice(&value.to_le_bytes());
    }
    page
}

fn stamp(page: &mut [u8; PAGE], seed: u64, index: usize) {
    page[..8].copy_from_slice(&(mixed(seed ^ ((index as u64) << 20)) | 0x0101_0101_0101_0101).to_le_bytes());
}

/// Writes the pattern of `seed`.
pub fn fill(bytes: &mut [u8], seed: u64) {
    let mut page = page(seed);
    for (index, chunk) in bytes.chunks_mut(PAGE).enumerate() {
        stamp(&mut page, seed, index);
        chunk.copy_from_slice(&page[..chunk.len()]);
    }
}

/// Checks every byte of what [`fill`] wrote.
pub fn check(bytes: &[u8], seed: u64) {
    let mut page = page(seed);
    for (index, chunk) in bytes.chunks(PAGE).enumerate() {
        stamp(&mut page, seed, index);
        if chunk != &page[..chunk.len()] {
            let at = chunk.iter().zip(&page).position(|(a, b)| a != b).unwrap_or(0);
            let (has, wants) = (chunk[at], page[at]);
            panic!("byte {} of {} is {has:#x} and was written as {wants:#x}", index * PAGE + at, bytes.len());
        }
    }
}

/// Checks that every byte is zero.
pub fn check_zero(bytes: &[u8]) {
    let zeros = [0; PAGE];
    for (index, chunk) in bytes.chunks(PAGE).enumerate() {
        if chunk != &zeros[..chunk.len()] {
            let at = chunk.iter().position(|&byte| byte != 0).unwrap_or(0);
            panic!("byte {} of {} is {:#x}, not zero", index * PAGE + at, bytes.len(), chunk[at]);
        }
    }
}

/// A little random generator.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}
