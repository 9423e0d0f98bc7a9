// Bytes that are kept for longer than an answer takes, in memory of their own. Node gives small buffers, and what it
// compressed, as parts of larger blocks; a part that is kept would keep all of its block.

/** A text as bytes to be kept. */
export const lastingText = (text: string, encoding: 'utf8' | 'latin1' = 'utf8'): Buffer => {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text, encoding))
  bytes.write(text, encoding)
  return bytes
}

const blockBytes = 256 * 1024

/** A shelf for thousands of small texts that go all at once: one behind the other in large blocks. */
export const createShelf = (): ((text: string) => Buffer) => {
  let block = Buffer.alloc(0)
  let used = 0
  return text => {
    const length = Buffer.byteLength(text)
    if (used + length > block.length) {
      block = Buffer.allocUnsafeSlow(Math.max(blockBytes, length))
      used = 0
    }
    const bytes = block.subarray(used, used + length)
    bytes.write(text)
    used += length
    return bytes
  }
}

/** The same bytes, to be kept. */
export const lasting = (bytes: Buffer): Buffer => {
  const own = Buffer.allocUnsafeSlow(bytes.length)
  own.set(bytes)
  return own
}
