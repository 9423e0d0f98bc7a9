// Requests as the bytes on the socket, in Latin-1, with a placeholder for the key: keys are new in every run, and neither
// cases nor their printed form may depend on them.

import { keyLength } from '../../src/keys/key-form.ts'

const prefix = 'svc_live_'
/** As long as a key, since frames and bodies have lengths. */
export const keyPlaceholder = prefix.padEnd(keyLength, 'Z')
/** The key without its prefix. */
export const secretPlaceholder = keyPlaceholder.slice(prefix.length)

/** A marker in generated requests that must not come back in a response header. */
export const marker = 'zq7mark'

export type RequestText = {
  readonly method?: string
  readonly target?: string
  readonly version?: string
  /** Header lines without line ends, sent in this order after host and key. */
  readonly headers?: readonly string[]
  readonly body?: string
  /** The host line; null for none. */
  readonly host?: string | null
  /** The line of the key; null for none. */
  readonly key?: string | null
}

export const requestText = ({
  method = 'GET',
  target = '/api/v1/locations?type=division',
  version = 'HTTP/1.1',
  headers = [],
  body = '',
  host = 'host: x',
  key = `x-api-key: ${keyPlaceholder}`,
}: RequestText): string =>
  [`${method} ${target} ${version}`, host, key, ...headers, '', body]
    .filter(line => line !== null)
    .join('\r\n')

/** The bytes, with the key in place of its placeholders. */
export const bytesWithKey = (text: string, key: string): Buffer =>
  Buffer.from(text.replaceAll(secretPlaceholder, key.slice(prefix.length)), 'latin1')
