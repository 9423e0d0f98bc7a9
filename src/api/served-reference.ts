// The reference as the API listener serves it: the page in two languages, its files, and the OpenAPI document. All are files that were
// written ahead of time; each is read at its first request and kept with its encodings.

import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { deflateRaw } from 'node:zlib'
import Negotiator from 'negotiator'
import { sampleOrigin } from '../common/endpoints.ts'
import { markup } from '../common/page/html.ts'
import type { Language } from '../common/page/words.ts'
import { encodeWhole, longestPreference } from './content-coding.ts'
import { copyOutOfPool } from './copy-out-of-pool.ts'
import type { Representation } from './endpoint.ts'
import { gzipEnd, gzipOptions, joinedGzip, storedStart } from './joined-gzip.ts'
import { tagOf } from './representation.ts'

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

export const always = 'cache-control: no-cache\r\nx-content-type-options: nosniff\r\n'
export const ofPage = `${always}content-security-policy: ${policy}\r\nreferrer-policy: no-referrer\r\n`

export const represent = (
  text: Buffer,
  type: string,
  headers: string,
  vary = 'accept-encoding',
): Representation => {
  const bytes = copyOutOfPool(text)
  return { tag: tagOf(bytes), type, headers, vary, chunks: [bytes], encode: encodeWhole(bytes) }
}

type Made = (address: string) => Representation
/** @param publicUrl `server.publicUrl` */
type Make = (publicUrl: string | null) => Promise<Made>

const textOf = (path: string): Promise<string> => readFile(new URL(path, import.meta.url), 'utf8')
const files =
  (type: string, ...paths: readonly string[]): Make =>
  async () => {
    const representation = represent(
      Buffer.from((await Promise.all(paths.map(textOf))).join('')),
      type,
      always,
    )
    return () => representation
  }
const style = (own: string): Make =>
  files('text/css; charset=utf-8', '../../dashboard/house.css', `../../dashboard/${own}`)
const page =
  (language: Language): Make =>
  async publicUrl => {
    const text = await textOf(`../../docs/reference.${language}.html`)
    const bytes = Buffer.from(text.replaceAll(sampleOrigin, markup(publicUrl ?? sampleOrigin)))
    const headers = `${ofPage}content-language: ${language}\r\n`
    const vary = 'accept-encoding, accept-language'
    const representation = represent(bytes, 'text/html; charset=utf-8', headers, vary)
    return () => representation
  }

/** The OpenAPI document, whose server is the address of the request. Only the rest is kept: a client may claim any host. */
const document: Make = async publicUrl => {
  const [begins = '', ...others] = (await textOf('../../docs/openapi.json')).split(sampleOrigin)
  const rest = copyOutOfPool(Buffer.from(others.join(publicUrl ?? sampleOrigin)))
  const end = gzipEnd(rest, copyOutOfPool(await deflate(rest, gzipOptions)))
  const tag = tagOf(rest)
  return address => {
    const start = Buffer.from(begins + (publicUrl ?? address))
    return {
      tag: tagOf(start) + tag,
      headers: always,
      vary: 'accept-encoding',
      chunks: [start, rest],
      encode: ({ gzip }) =>
        gzip ? { coding: 'gzip', chunks: joinedGzip(storedStart(start), end) } : undefined,
    }
  }
}
const deflate = promisify(deflateRaw)

const makers: Readonly<Record<string, Make>> = {
  en: page('en'),
  bn: page('bn'),
  '/api/v1/openapi.json': document,
  '/docs/reference.css': style('reference/reference.css'),
  '/status.css': style('status/status.css'),
  '/docs/reference.js': files('text/javascript; charset=utf-8', '../../dashboard/reference/reference.js'),
  '/docs/icon.svg': files('image/svg+xml', '../../dashboard/icon.svg'),
}

type PageRequest = {
  readonly path: string
  /** Of which `lang` is read. */
  readonly query: string
  /** The header, for a page whose query names no language. */
  readonly acceptLanguage: string | undefined
  /** The scheme and host of the request; undefined where it names none. */
  readonly address: string | undefined
}

export type ServePage = (request: PageRequest) => Promise<Representation>

/** The reference of one gateway. @param publicUrl where consumers reach it, if it is configured */
export const createReference = (publicUrl: string | null): ServePage => {
  const kept = new Map<string, Promise<Made>>()
  return async ({ path, query, acceptLanguage, address = sampleOrigin }) => {
    const name = path === '/docs' ? languageOf(query, acceptLanguage) : path
    let made = kept.get(name)
    if (!made) {
      made = makers[name]?.(publicUrl) ?? Promise.reject(new Error(`the reference has no ${name}`))
      kept.set(name, made)
      // A file that can't be read now may be there later.
      made.catch(() => kept.delete(name))
    }
    return (await made)(address)
  }
}

export const languageOf = (query: string, acceptLanguage: string | undefined): Language => {
  const asked = new URLSearchParams(query).get('lang')
  if (asked === 'en' || asked === 'bn') return asked
  if (acceptLanguage === undefined || acceptLanguage.length > longestPreference) return 'en'
  const headers = { 'accept-language': acceptLanguage }
  return new Negotiator({ headers }).language(['en', 'bn']) === 'bn' ? 'bn' : 'en'
}
