// Reads the body of a POST as text, up to the provider's limit of 128 kB. Used for forecasts and for /control.

import type { IncomingMessage } from 'node:http'
import { Refusal } from './refusal.ts'

const maxBytes = 128 * 1024

/** @throws Refusal when the body is too long */
export const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    // The rest is read and dropped, because a client that is still sending would miss the refusal.
    if (bytes <= maxBytes) chunks.push(chunk)
  }
  if (bytes > maxBytes) throw new Refusal(413, 'Payload Too Large')
  return Buffer.concat(chunks).toString()
}
