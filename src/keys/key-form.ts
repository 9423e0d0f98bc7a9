// The format of an API key: `svc_live_`, or `svc_test_` of a test key, 32 random base62 characters (190 bits), 6 of checksum. With the
// checksum a typing error is refused without a look-up.

import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Branded } from '../common/brand.ts'

export const keyPrefix = 'svc_live_'
/** Of test keys; it has the same length. */
export const testKeyPrefix = 'svc_test_'
const secretLength = 32
const checksumLength = 6
const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Characters of every key. */
export const keyLength = keyPrefix.length + secretLength + checksumLength
const form = new RegExp(`^(?:${keyPrefix}|${testKeyPrefix})[0-9A-Za-z]{${secretLength + checksumLength}}$`)

/** A key in clear text; never stored, never logged. */
export type PresentedKey = Branded<'PresentedKey'>
/** SHA-256 of a key in hexadecimal; the store holds only this. */
export type KeyHash = Branded<'KeyHash'>

export const randomBase62 = (length: number): string =>
  Array.from({ length }, () => digits[randomInt(digits.length)]).join('')

/** Whether a text begins as keys do. */
export const beginsAsKey = (text: string): boolean =>
  text.startsWith(keyPrefix) || text.startsWith(testKeyPrefix)

export const createKey = (prefix = keyPrefix): PresentedKey => {
  const body = prefix + randomBase62(secretLength)
  return (body + checksumOf(body)) as PresentedKey
}

/** The header's value as a key; undefined when its form or checksum is wrong. */
export const parseKey = (value: string): PresentedKey | undefined => {
  if (!form.test(value)) return undefined
  return checksumOf(value.slice(0, -checksumLength)) === value.slice(-checksumLength)
    ? (value as PresentedKey)
    : undefined
}

/** Also hashes values that may not be keys. */
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
