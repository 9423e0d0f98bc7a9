// A body without its content-encoding.

import { brotliDecompressSync, gunzipSync } from 'node:zlib'

const bound = { maxOutputLength: 2 ** 24 }

/** @throws Error for what is damaged, or larger than any answer */
export const decoded = (bytes: Buffer, coding: string | undefined): Buffer => {
  if (coding === 'gzip') return gunzipSync(bytes, bound)
  return coding === 'br' ? brotliDecompressSync(bytes, bound) : bytes
}
