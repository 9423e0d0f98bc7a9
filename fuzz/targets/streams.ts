// Target: the API over TLS. Steps of HTTP/1.1, and HTTP/2 frames in and out of order. Every complete valid request is answered as
// the contract says, everything else gets an error of the contract or a close, and the process stays well.

import { once } from 'node:events'
import { connect as connectTls } from 'node:tls'
import fc, { type Arbitrary } from 'fast-check'
import { frame, frames, getFrame, localCertificate } from '../../test/support/http2-client.ts'
import { demandInTime, Fault } from '../fault.ts'
import { checkContent, isLate } from '../http/answer-rules.ts'
import { patienceMs } from '../http/conversation.ts'
import { noHeaderTable, readStreams } from '../http/http2-reader.ts'
import { bytesWithKey, keyPlaceholder } from '../http/request-text.ts'
import {
  batchesOf,
  chance,
  indexAt,
  itemAt,
  noise,
  several,
  share,
  type Target,
  weighted,
  words,
} from '../target.ts'
import { runConnection } from './sockets.ts'
import { anyStep } from './steps.ts'

type Frames = {
  readonly kind: string
  /** In Latin-1, with the placeholder of the key; each is a write of its own. */
  readonly pieces: readonly string[]
  /** How many streams must be answered; undefined where none need be. */
  readonly answers?: number
  /** The client ends its side, and waits for the server to do so too. */
  readonly waitsForEnd?: boolean
}
type Connection = Parameters<typeof runConnection>[2]
type StreamCase = Frames | { readonly kind: 'HTTP/1.1'; readonly connection: Connection }

const path = '/api/v1/locations/district/3026'
const zeros = (length: number): Buffer => Buffer.alloc(length)
const window = (size: number): Buffer => {
  const payload = zeros(4)
  payload.writeUInt32BE(size)
  return payload
}
/** The same frame with other flags. */
const flagged = (given: Buffer, flags: number): Buffer => {
  given.writeUInt8(flags, 4)
  return given
}
const get = (stream: number): Buffer => getFrame(stream, path, { 'x-api-key': keyPlaceholder })

/** What a frame is made of: places and bytes. */
type Random = { readonly at: readonly [number, number, number]; readonly bytes: Buffer }
type Make = (stream: number, random: Random) => Buffer

const request: Make = (stream, { at: [isSplit, at] }) => {
  if (isSplit < 0.7) return get(stream)
  // A head in two frames. Not cut in the middle of the key, which is put in later.
  const block = get(stream).subarray(9)
  const cut = Math.max(1, indexAt(block.length - keyPlaceholder.length, at))
  return Buffer.concat([
    frame(frames.headers, 1, stream, block.subarray(0, cut)),
    frame(frames.continuation, 4, stream, block.subarray(cut)),
  ])
}
const byteAt = (place: number): number => indexAt(256, place)
/** What may stand between requests, and changes nothing for them. */
const harmless: Readonly<Record<string, Make>> = {
  ping: (_, { bytes }) => frame(frames.ping, 0, 0, Buffer.concat([bytes, zeros(8)]).subarray(0, 8)),
  settings: () => frame(frames.settings, 0, 0),
  priority: (stream, { at: [more] }) =>
    frame(2, 0, stream + 200 + 2 * byteAt(more), Buffer.from([0, 0, 0, 0, 9])),
  unknown: (_, { at: [type, flags], bytes }) => frame(32 + indexAt(224, type), byteAt(flags), 0, bytes),
  window: (_, { at: [size] }) => frame(frames.windowUpdate, 0, 0, window(1 + indexAt(1_000, size))),
}
const targets = ['', '*', '/\u0000', path]
const names = ['', 'a b', ...words('X-Upper connection te :status')]
/** What may end the session, or only its stream. */
const hostile: Readonly<Record<string, Make>> = {
  ...harmless,
  'a body behind a refusal': (stream, { at: [many] }) =>
    Buffer.concat([
      flagged(getFrame(stream, path, { ':method': 'POST' }), 4),
      ...Array(1 + indexAt(40, many)).fill(frame(0, 0, stream, zeros(4_000))),
    ]),
  'a request that is given up': stream =>
    Buffer.concat([getFrame(stream, path), frame(frames.reset, 0, stream, window(8))]),
  'pings in a flood': () => Buffer.concat(Array(2_000).fill(frame(frames.ping, 0, 0, zeros(8)))),
  'a window of nothing': (stream, { at: [which] }) =>
    frame(frames.windowUpdate, 0, which < 0.5 ? 0 : stream, window(0)),
  'a window that overflows': () => frame(frames.windowUpdate, 0, 0, window(2 ** 31 - 1)),
  'settings out of range': (_, { at }) =>
    frame(frames.settings, 0, 0, Buffer.from([0, 1 + indexAt(6, at[0]), ...[...at, at[0]].map(byteAt)])),
  'data of no stream': (_, { bytes }) => frame(0, 0, 0, bytes),
  'a continuation of nothing': (stream, { bytes }) => frame(frames.continuation, 4, stream, bytes),
  'a head without an end': stream => flagged(getFrame(stream, path), 1),
  'a head that is none': (stream, { bytes }) => frame(frames.headers, 5, stream, bytes),
  'headers that are odd': (stream, { at: [target, name, value] }) =>
    getFrame(stream, itemAt(targets, target) ?? '', {
      [itemAt(names, name) ?? '']: itemAt(['', 'x', '\r\n', '\u0000'], value) ?? '',
    }),
  goaway: (stream, { at: [which], bytes }) => frame(7, 0, which < 0.5 ? 0 : stream, bytes),
  'a push': (stream, { bytes }) => frame(5, 4, stream, bytes),
  'a longer frame than there may be': (_, { at: [type] }) => frame(indexAt(10, type), 0, 0, zeros(20_000)),
  'any frame': (stream, { at: [type, flags, which], bytes }) =>
    frame(indexAt(11, type), byteAt(flags), itemAt([0, 1, stream], which) ?? 0, bytes),
}

const latin = (made: Buffer): string => made.toString('latin1')
const start = `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${latin(frame(frames.settings, 0, 0, noHeaderTable))}`
const randoms: Arbitrary<Random> = fc.record({
  at: fc.tuple(share, share, share),
  bytes: noise(0, 40).map(text => Buffer.from(text, 'latin1')),
})
/** Each frame on its own stream. */
const piecesOf = (...makes: Make[]): Arbitrary<string[]> =>
  several(fc.tuple(fc.constantFrom(...makes), randoms), 1, 20).map(all => [
    start,
    ...all.map(([make, random], i) => latin(make(2 * i + 1, random))),
  ])
const valid = piecesOf(
  ...Object.values(harmless).map(
    (before): Make =>
      (stream, random) =>
        Buffer.concat([before(stream, random), request(stream, random)]),
  ),
)
// Each takes a second or two.
const waitsForEnd = chance(5)

/** Requests, and frames of a kind among them: perhaps out of order, and with a byte that is another one. */
const mixed = ([kind, make]: [string, Make]): Arbitrary<StreamCase> =>
  fc
    .tuple(piecesOf(make, request), chance(30), chance(20), fc.nat(), fc.nat(255), waitsForEnd)
    .map(([all, isReversed, isChanged, at, byte, waitsForEnd]) => {
      const pieces = isReversed ? all.toReversed() : all
      const changed = Buffer.from(pieces[at % pieces.length] ?? '', 'latin1')
      if (isChanged && changed.length > 0) changed[at % changed.length] = byte
      return { kind, pieces: pieces.with(at % pieces.length, latin(changed)), waitsForEnd }
    })
const cases: Arbitrary<StreamCase> = weighted<StreamCase>(
  [
    20,
    fc.record({
      kind: fc.constant('HTTP/1.1' as const),
      connection: fc.record({
        before: fc.constant([]),
        last: anyStep,
        cutting: fc.constant({ cuts: [], pauseMs: 0 }),
      }),
    }),
  ],
  [5, valid.map(pieces => ({ kind: 'valid requests', pieces, answers: pieces.length - 1 }))],
  [60, fc.oneof(...Object.entries(hostile).map(mixed))],
)

// For what need not be answered.
const quietMs = 60

/** @throws Fault */
const run = async (url: string, validKey: string, given: Frames): Promise<void> => {
  const { kind, pieces, answers } = given
  const { hostname: host, port } = new URL(url)
  const to = { host, port: Number(port), rejectUnauthorized: false, ALPNProtocols: ['h2'] }
  const socket = connectTls(to)
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  const parts: Buffer[] = []
  const came = () =>
    [...readStreams(Buffer.concat(parts)).values()].filter(({ isEnded, status }) => isEnded && status)
  let timer = setTimeout(end, answers === undefined ? quietMs * 5 : patienceMs)
  socket.on('error', () => {}).on('close', () => end())
  socket.on('data', (chunk: Buffer) => {
    parts.push(chunk)
    if (answers === undefined) {
      clearTimeout(timer)
      timer = setTimeout(end, quietMs)
    } else if (came().length >= answers) end()
  })
  for (const piece of pieces) socket.write(bytesWithKey(piece, validKey))
  await over
  clearTimeout(timer)
  const all = came().map(({ status = 0, body }) => ({ status, body, headers: new Map(), headBytes: 0 }))
  let hasEnded = true
  if (given.waitsForEnd && !socket.destroyed)
    await once(socket.resume().end(), 'close', { signal: AbortSignal.timeout(patienceMs) }).catch(() => {
      hasEnded = false
    })
  socket.destroy()
  for (const answer of all) checkContent(answer)
  demandInTime(hasEnded, 'a connection that does not end', `${kind}: ${patienceMs} ms`)
  if (answers === undefined) return
  const statuses = `${kind}: ${all.map(({ status }) => status).join(' ')} of ${answers}`
  demandInTime(all.length >= answers, 'a complete request without an answer', statuses)
  if (all.some(({ status }) => status !== 200))
    throw new Fault('another status than HTTP and the contract demand', statuses, all.some(isLate))
}

export const streams: Target<StreamCase> = {
  name: 'streams',
  share: 2,
  checks: 'over TLS and HTTP/2 valid requests are answered, others refused or closed; bounded memory',
  batches: batchesOf(cases, 350),
  atOnce: 16,
  setting: {
    env: {
      ABOHAWA_TEST_SERVER__REQUEST_TIMEOUT: '2s',
      ABOHAWA_SERVER__TLS__CERT: localCertificate.cert,
      ABOHAWA_SERVER__TLS__KEY: localCertificate.key,
    },
  },
  kindOf: ({ kind }) => kind,
  print: given =>
    'connection' in given
      ? `HTTP/1.1, ${given.connection.last?.ending}: ${given.connection.last?.text}`
      : `${given.kind}: ${given.pieces.join('|')}`,
  open: async ({ key, gateway }) => ({
    run: given =>
      'connection' in given
        ? runConnection(gateway().apiUrl, key, given.connection)
        : run(gateway().apiUrl, key, given),
  }),
}
