// Target: the API over TLS. HTTP/1.1 socket shapes, handshakes that are cut anywhere, and HTTP/2 frames in and out of order.
// Every complete valid request is answered as the contract says, everything else gets an error of the contract or a close, and the
// process stays well. Longer than 300 lines, because each kind of frame stands beside the answers that it allows.

import { once } from 'node:events'
import { connect as connectTcp } from 'node:net'
import { Duplex } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import fc, { type Arbitrary } from 'fast-check'
import { frame, frames, getFrame, localCertificate } from '../../test/support/http2-client.ts'
import { demandInTime, Fault } from '../fault.ts'
import { checkContent, isLate } from '../http/answer-rules.ts'
import { noHeaderTable, readStreams } from '../http/http2-reader.ts'
import { bytesWithKey, keyPlaceholder } from '../http/request-text.ts'
import {
  batchesOf,
  chance,
  indexAt,
  noise,
  pick,
  several,
  share,
  type Target,
  upTo,
  weighted,
} from '../target.ts'
import { anyShape, type Shaped } from './socket-shapes.ts'
import { runShape } from './sockets.ts'

type Http2Case = {
  readonly kind: string
  /** In Latin-1, with the placeholder of the key; each is a write of its own. */
  readonly pieces: readonly string[]
  /** How many streams must be answered; undefined where none need be. */
  readonly answers: number | undefined
  /** After so many bytes of the client, nothing of it arrives any more. */
  readonly cutAfter: number | undefined
  /** The client ends its side, and waits for the server to do so too. */
  readonly waitsForEnd: boolean
}
type StreamCase = Http2Case | { readonly kind: 'HTTP/1.1'; readonly shaped: Shaped }

const path = '/api/v1/locations/district/3026'
const key = keyPlaceholder
const bytes = (least: number, most: number): Arbitrary<Buffer> =>
  noise(least, most).map(text => Buffer.from(text, 'latin1'))
const window = (size: number): Buffer => {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(size)
  return payload
}
/** The same frame with other flags. */
const flagged = (given: Buffer, flags: number): Buffer => {
  given.writeUInt8(flags, 4)
  return given
}
const get = (stream: number): Buffer => getFrame(stream, path, { 'x-api-key': key })
/** A head in two frames: HEADERS without its end, and CONTINUATION. Not cut in the middle of the key, which is put in later. */
const split = (stream: number, at: number): Buffer => {
  const block = get(stream).subarray(9)
  const cut = Math.max(1, indexAt(block.length - key.length, at))
  return Buffer.concat([
    frame(frames.headers, 1, stream, block.subarray(0, cut)),
    frame(frames.continuation, 4, stream, block.subarray(cut)),
  ])
}

/** A frame, when its stream is known. */
type Make = (stream: number) => Buffer
type Frames = Arbitrary<Make>
const always = (make: Make): Frames => fc.constant(make)
const stable = (frames: Arbitrary<Buffer>): Frames => frames.map(made => () => made)
/** Frames of a type with any payload, on the stream or on one of some others. */
const anyPayload = (type: number, flags: number, most: number, ...others: number[]): Frames =>
  fc.tuple(pick(undefined, ...others), bytes(0, most)).map(
    ([number, payload]) =>
      stream =>
        frame(type, flags, number ?? stream, payload),
  )

const request: Frames = weighted(
  [7, always(get)],
  [3, share.map(part => (stream: number) => split(stream, part))],
)

/** What may stand between requests, and changes nothing for them. */
const harmless: Readonly<Record<string, Frames>> = {
  ping: stable(bytes(8, 8).map(payload => frame(frames.ping, 0, 0, payload))),
  settings: always(() => frame(frames.settings, 0, 0)),
  priority: upTo(100, 200).map(
    more => stream => frame(2, 0, stream + 2 * more, Buffer.from([0, 0, 0, 0, 9])),
  ),
  unknown: fc.tuple(upTo(32, 255), fc.nat(255), bytes(20, 20)).map(
    ([type, flags, payload]) =>
      () =>
        frame(type, flags, 0, payload),
  ),
  window: stable(upTo(1, 1_000).map(size => frame(frames.windowUpdate, 0, 0, window(size)))),
}
/** What may end the session, or only its stream. */
const hostile: Readonly<Record<string, Frames>> = {
  ...harmless,
  'a body behind a refusal': upTo(1, 40).map(many => stream => {
    const refused = flagged(getFrame(stream, path, { ':method': 'POST' }), 4)
    return Buffer.concat([refused, ...Array(many).fill(frame(0, 0, stream, Buffer.alloc(4_000)))])
  }),
  'a request that is given up': always(stream =>
    Buffer.concat([getFrame(stream, path), frame(frames.reset, 0, stream, window(8))]),
  ),
  'pings in a flood': stable(
    bytes(8, 8).map(payload => Buffer.concat(Array(2_000).fill(frame(frames.ping, 0, 0, payload)))),
  ),
  'a window of nothing': fc.oneof(
    always(() => frame(frames.windowUpdate, 0, 0, window(0))),
    always(stream => frame(frames.windowUpdate, 0, stream, window(0))),
  ),
  'a window that overflows': always(() => frame(frames.windowUpdate, 0, 0, window(2 ** 31 - 1))),
  'settings out of range': fc.tuple(upTo(1, 6), bytes(4, 4)).map(
    ([name, value]) =>
      () =>
        frame(frames.settings, 0, 0, Buffer.from([0, name, ...value])),
  ),
  'data of no stream': anyPayload(0, 0, 20, 0),
  'a continuation of nothing': anyPayload(frames.continuation, 4, 20),
  'a head without an end': always(stream => flagged(getFrame(stream, path), 1)),
  'a head that is none': anyPayload(frames.headers, 5, 30),
  'headers that are odd': fc
    .tuple(
      pick('', '*', '/\u0000', path),
      pick('X-Upper', 'connection', 'te', ':status', 'a b', ''),
      pick('', 'x', '\r\n', '\u0000'),
    )
    .map(
      ([target, name, value]) =>
        (stream: number) =>
          getFrame(stream, target, { [name]: value }),
    ),
  goaway: anyPayload(7, 0, 60, 0),
  'a push': anyPayload(5, 4, 20),
  'a longer frame than there may be': stable(fc.nat(9).map(type => frame(type, 0, 0, Buffer.alloc(20_000)))),
  'any frame': fc.tuple(fc.nat(10), fc.nat(255)).chain(([type, flags]) => anyPayload(type, flags, 40, 0, 1)),
}

const latin = (made: Buffer): string => made.toString('latin1')
const start = latin(
  Buffer.concat([
    Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    frame(frames.settings, 0, 0, noHeaderTable),
  ]),
)
/** Each frame on a stream of its own. */
const piecesOf = (all: readonly Make[]): string[] => [start, ...all.map((make, i) => latin(make(2 * i + 1)))]
// Each takes a second or two.
const waitsForEnd = chance(5)
const plainly = { answers: undefined, cutAfter: undefined }

const valid = several(
  fc.tuple(fc.oneof(...Object.values(harmless)), request).map(
    ([before, then]): Make =>
      stream =>
        Buffer.concat([before(stream), then(stream)]),
  ),
  1,
  20,
).map(piecesOf)

/** Requests, and frames of a kind among them: perhaps out of order, and with a byte that is another one. */
const mixed = (kind: string, of: Frames): Arbitrary<StreamCase> =>
  fc
    .tuple(several(fc.oneof(of, request), 1, 20), chance(30), chance(20), fc.nat(), fc.nat(255), waitsForEnd)
    .map(([all, isReversed, isChanged, at, byte, waitsForEnd]) => {
      const pieces = isReversed ? piecesOf(all).reverse() : piecesOf(all)
      const changed = Buffer.from(pieces[at % pieces.length] ?? '', 'latin1')
      if (isChanged && changed.length > 0) changed[at % changed.length] = byte
      return { ...plainly, kind, pieces: pieces.with(at % pieces.length, latin(changed)), waitsForEnd }
    })

const cut: Arbitrary<StreamCase> = fc
  .record({ pieces: valid, cutAfter: fc.nat(2_500), waitsForEnd })
  .map(made => ({ ...made, kind: 'a cut handshake', answers: undefined }))
const cases: Arbitrary<StreamCase> = weighted<StreamCase>(
  [15, cut],
  [20, anyShape.map(shaped => ({ kind: 'HTTP/1.1' as const, shaped }))],
  [
    5,
    valid.map(pieces => ({
      ...plainly,
      kind: 'valid requests',
      pieces,
      answers: pieces.length - 1,
      waitsForEnd: false,
    })),
  ],
  [60, fc.oneof(...Object.entries(hostile).map(([kind, of]) => mixed(kind, of)))],
)

/** The client's side of a connection, which ends unseen after so many bytes. */
const cutBelow = (url: string, cutAfter: number): Duplex => {
  const { hostname, port } = new URL(url)
  const socket = connectTcp(Number(port), hostname)
  let left = cutAfter
  const duplex = new Duplex({
    read: () => {},
    write: (chunk: Buffer, _encoding, done) => {
      const some = chunk.subarray(0, left)
      left -= some.length
      if (some.length > 0) socket.write(some)
      done()
    },
    final: done => void socket.end(done),
    destroy: (_error, done) => {
      socket.destroy()
      done(null)
    },
  })
  socket.on('data', chunk => duplex.push(chunk))
  socket.on('error', () => {})
  socket.on('close', () => duplex.destroy())
  return duplex
}

const patienceMs = 10_000
// For what need not be answered.
const quietMs = 60
// The quota may be spent.
const fromGoodKey = [200, 429]

/** @throws Fault */
const run = async (url: string, validKey: string, given: Http2Case): Promise<void> => {
  const { kind, pieces, answers, cutAfter } = given
  const { hostname: host, port } = new URL(url)
  const socket = connectTls({
    ...(cutAfter === undefined ? { host, port: Number(port) } : { socket: cutBelow(url, cutAfter) }),
    rejectUnauthorized: false,
    ALPNProtocols: ['h2'],
  })
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  const parts: Buffer[] = []
  const came = () =>
    [...readStreams(Buffer.concat(parts)).values()].filter(({ isEnded, status }) => isEnded && status)
  let timer = setTimeout(end, answers === undefined ? quietMs * 5 : patienceMs)
  socket.on('error', () => {}).on('close', () => end())
  socket.on('data', (chunk: Buffer) => {
    parts.push(chunk)
    if (answers !== undefined) {
      if (came().length >= answers) end()
      return
    }
    clearTimeout(timer)
    timer = setTimeout(end, quietMs)
  })
  for (const piece of pieces) socket.write(bytesWithKey(piece, validKey))
  await over
  clearTimeout(timer)
  const all = came().map(({ status = 0, body }) => ({ status, body, headers: new Map(), headBytes: 0 }))
  const hasEnded = !given.waitsForEnd || (await endOf(socket))
  socket.destroy()
  for (const answer of all) checkContent(answer)
  demandInTime(hasEnded, 'a connection that does not end', `${kind}: ${patienceMs} ms`)
  if (answers === undefined) return
  demandInTime(
    all.length >= answers,
    'a complete request without an answer',
    `${kind}: ${all.length} of ${answers}`,
  )
  const wrong = all.filter(({ status }) => !fromGoodKey.includes(status))
  if (wrong.length > 0) {
    const statuses = wrong.map(({ status }) => status).join(', ')
    throw new Fault(
      'another status than HTTP and the contract demand',
      `${kind}: ${statuses}`,
      wrong.some(isLate),
    )
  }
}

/** Ends the client's side; whether the server ends its own in time. */
const endOf = async (socket: TLSSocket): Promise<boolean> => {
  if (socket.destroyed) return true
  const closed = once(socket.resume().end(), 'close', { signal: AbortSignal.timeout(patienceMs) })
  return closed.then(
    () => true,
    () => false,
  )
}

export const streams: Target<StreamCase> = {
  name: 'streams',
  share: 2,
  checks:
    'over TLS and HTTP/2 every complete valid request is answered as the contract says; all else gets its errors or a close; connections end; memory bounded',
  batches: batchesOf(cases, 350),
  atOnce: 16,
  setting: {
    env: {
      ABOHAWA_SERVER__REQUEST_TIMEOUT: '1s',
      ABOHAWA_SERVER__TLS__CERT: localCertificate.cert,
      ABOHAWA_SERVER__TLS__KEY: localCertificate.key,
    },
  },
  kindOf: ({ kind }) => kind,
  print: given =>
    'shaped' in given
      ? `HTTP/1.1, ${given.shaped.ending}: ${given.shaped.text}`
      : `${given.kind}, cut after ${given.cutAfter ?? 'nothing'}: ${given.pieces.join('|')}`,
  open: async system => ({
    run: async given => {
      const [{ key: validKey }] = system.keys
      const { apiUrl: url } = system.gateway()
      if ('shaped' in given) await runShape(url, validKey, given.shaped)
      else await run(url, validKey, given)
    },
  }),
}
