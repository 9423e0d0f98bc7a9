// Buffers that are used again: each response is joined in one, which comes back once its bytes are sent. A new one for each would be
// memory outside V8's heap, and V8 collects all old objects after each 64 MiB of that: some ten times a second under TLS.

// Of each size, 24 MiB in all.
const spareBytesPerSize = 4 * 1024 * 1024
const spares = [4, 16, 64, 128, 256, 512].map(kibibytes => ({
  size: kibibytes * 1024,
  buffers: [] as Buffer[],
}))

/** A buffer of at least this length, for one response. */
export const takeBuffer = (length: number): Buffer => {
  for (const { size, buffers } of spares)
    if (length <= size) return buffers.pop() ?? Buffer.allocUnsafeSlow(size)
  return Buffer.allocUnsafeSlow(length)
}

/** Keeps a buffer from `takeBuffer`, whose bytes nothing reads any more, for another response. */
export const giveBack = (bytes: Buffer): void => {
  for (const { size, buffers } of spares)
    if (bytes.length === size && buffers.length * size < spareBytesPerSize) buffers.push(bytes)
}
