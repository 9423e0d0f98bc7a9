// Copies outside Node's buffer pool, for bytes that outlive a response: a small buffer that is kept would keep its whole block.

export const textOutOfPool = (text: string): Buffer => {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}

const blockBytes = 256 * 1024

/** For thousands of small buffers that are freed together: they are cut from large blocks. */
export type Arena = { text(text: string): Buffer; copy(bytes: Buffer): Buffer }

export const createArena = (): Arena => {
  let block = Buffer.alloc(0)
  let used = 0
  const cut = (length: number): Buffer => {
    if (used + length > block.length) {
      block = Buffer.allocUnsafeSlow(Math.max(blockBytes, length))
      used = 0
    }
    const bytes = block.subarray(used, used + length)
    used += length
    return bytes
  }
  return {
    text: text => {
      const bytes = cut(Buffer.byteLength(text))
      bytes.write(text)
      return bytes
    },
    copy: given => {
      const bytes = cut(given.length)
      bytes.set(given)
      return bytes
    },
  }
}

export const copyOutOfPool = (bytes: Buffer): Buffer => {
  const own = Buffer.allocUnsafeSlow(bytes.length)
  own.set(bytes)
  return own
}
