// Bytes that are kept for longer than an answer takes, each in memory of its own. Node gives small buffers, and what it
// compressed, as parts of larger blocks; a part that is kept would keep all of its block.

/** A text as bytes to be kept. */
export const lastingText = (text: string, encoding: 'utf8' | 'latin1' = 'utf8'): Buffer => {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text, encoding))
  bytes.write(text, encoding)
  return bytes
}

/** The same bytes, to be kept. */
export const lasting = (bytes: Buffer): Buffer => {
  const own = Buffer.allocUnsafeSlow(bytes.length)
  own.set(bytes)
  return own
}
