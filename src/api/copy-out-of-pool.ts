// Copies outside Node's buffer pool, for bytes that outlive a response: a small buffer that is kept would keep its whole block.

export const textOutOfPool = (text: string): Buffer => {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}

const blockBytes = 256 * 1024

/** Copies bytes into large blocks: for thousands of small buffers that are freed together. */
export const createArena = () => {
  let block = Buffer.alloc(0)
  let used = 0
  return (given: Buffer): Buffer => {
    if (used + given.length > block.length) {
      block = Buffer.allocUnsafeSlow(Math.max(blockBytes, given.length))
      used = 0
    }
    const bytes = block.subarray(used, used + given.length)
    bytes.set(given)
    used += given.length
    return bytes
  }
}

export const copyOutOfPool = (bytes: Buffer): Buffer => {
  const own = Buffer.allocUnsafeSlow(bytes.length)
  own.set(bytes)
  return own
}
