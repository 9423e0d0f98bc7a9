// The form of an API key: `svc_live_`, 32 base62 characters by chance (190 bits), 6 of checksum. The checksum lets a
// typing error be refused without a look-up. Knows nothing of who a key belongs to.

import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Branded } from '../brand.ts'

export const keyPrefix = 'svc_live_'
const secretLength = 32
const checksumLength = 6
const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Characters of every key. */
export const keyLength = keyPrefix.length + secretLength + checksumLength
const form = new RegExp(`^${keyPrefix}[0-9A-Za-z]{${secretLength + checksumLength}}$`)

/** A key as its holder has it; never stored and never logged. */
export type PresentedKey = Branded<'PresentedKey'>
/** SHA-256 of a key in hexadecimal: what is stored in its place. */
export type KeyHash = Branded<'KeyHash'>

export const randomBase62 = (length: number): string =>
  Array.from({ length }, () => digits[randomInt(digits.length)]).join('')

export const createKey = (): PresentedKey => {
  const body = keyPrefix + randomBase62(secretLength)
  return (body + checksumOf(body)) as PresentedKey
}

/** The header's value as a key, or undefined when its form or its checksum says that it can't be one of ours. */
export const parseKey = (value: string): PresentedKey | undefined => {
  if (!form.test(value)) return undefined
  return checksumOf(value.slice(0, -checksumLength)) === value.slice(-checksumLength)
    ? (value as PresentedKey)
    : undefined
}

/** Also of what only may be a key. */
export const hashOf = (key: PresentedKey | string): KeyHash => hash('sha256', key, 'hex') as KeyHash

const checksumOf = (body: string): string => {
  let rest = crc32(body)
  let text = ''
  for (let i = 0; i < checksumLength; i++) {
    text = digits[rest % 62] + text
    rest = Math.floor(rest / 62)
  }
  return text
}
