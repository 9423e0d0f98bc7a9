// The reference as the API listener serves it: the page in two languages, its files, and the OpenAPI document. Each is read or
// rendered at its first request and kept, with its encodings.

import { readFile } from 'node:fs/promises'
import Negotiator from 'negotiator'
import type { Language } from '../../page/words.ts'
import { encodeWhole, longestPreference } from '../content-coding.ts'
import { jsonType, type Representation, tagOf } from '../representation.ts'
import { unpooledCopy } from '../unpooled.ts'
import { type ReferenceDocument, referencePage } from './page.ts'

// Nothing from elsewhere, nothing inline, nothing sent anywhere but back here.
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ')

const always = 'cache-control: no-cache\r\nx-content-type-options: nosniff\r\n'
const ofPage = `${always}content-security-policy: ${policy}\r\nreferrer-policy: no-referrer\r\n`

const represent = (text: Buffer, type: string, headers: string, vary = 'accept-encoding'): Representation => {
  const bytes = unpooledCopy(text)
  return { tag: tagOf(bytes), type, headers, vary, chunks: [bytes], encode: encodeWhole(bytes) }
}

const documentAt = new URL('../../../docs/openapi.json', import.meta.url)
const files =
  (type: string, ...paths: readonly string[]) =>
  async (): Promise<Representation> =>
    represent(
      Buffer.concat(await Promise.all(paths.map(path => readFile(new URL(path, import.meta.url))))),
      type,
      always,
    )
const page = (language: Language) => async (): Promise<Representation> => {
  const document = JSON.parse(await readFile(documentAt, 'utf8')) as ReferenceDocument
  const bytes = Buffer.from(referencePage(document, language))
  const headers = `${ofPage}content-language: ${language}\r\n`
  return represent(bytes, 'text/html; charset=utf-8', headers, 'accept-encoding, accept-language')
}

const makers: Readonly<Record<string, () => Promise<Representation>>> = {
  en: page('en'),
  bn: page('bn'),
  '/api/v1/openapi.json': async () => represent(await readFile(documentAt), jsonType, always),
  '/docs/reference.css': files('text/css; charset=utf-8', '../../page/theme.css', 'page/reference.css'),
  '/docs/reference.js': files('text/javascript; charset=utf-8', 'page/reference.js'),
  '/docs/icon.svg': files('image/svg+xml', '../../page/icon.svg'),
}

const kept = new Map<string, Promise<Representation>>()

/**
 * @param path one of `referencePaths`
 * @param query of which `lang` is read
 * @param acceptLanguage the header, for a page whose query names no language
 */
export const servedReference = (
  path: string,
  query: string,
  acceptLanguage: string | undefined,
): Promise<Representation> => {
  const name = path === '/docs' ? languageOf(query, acceptLanguage) : path
  const known = kept.get(name)
  if (known) return known
  const made = makers[name]?.() ?? Promise.reject(new Error(`the reference has no ${name}`))
  kept.set(name, made)
  // A file that can't be read may be there the next time.
  made.catch(() => kept.delete(name))
  return made
}

const languageOf = (query: string, acceptLanguage: string | undefined): Language => {
  const asked = new URLSearchParams(query).get('lang')
  if (asked === 'en' || asked === 'bn') return asked
  if (acceptLanguage === undefined || acceptLanguage.length > longestPreference) return 'en'
  const headers = { 'accept-language': acceptLanguage }
  return new Negotiator({ headers }).language(['en', 'bn']) === 'bn' ? 'bn' : 'en'
}
