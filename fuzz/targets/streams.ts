// Target: the API over TLS. HTTP/1.1 socket shapes, handshakes that are cut anywhere, and HTTP/2 frames in and out of order.
// Every complete valid request is answered as the contract says, everything else gets an error of the contract or a close, and the
// process stays well. Longer than 300 lines, because each frame stands beside the answers that it allows.

import { connect as connectTcp } from 'node:net'
import { Duplex } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { keyLength } from '../../src/keys/key-form.ts'
import { frame, frames, getFrame } from '../../test/support/http2-client.ts'
import { type Finding, finding, slowness } from '../finding.ts'
import { brokenContent, brokenRules, isLate } from '../http/answer-rules.ts'
import { noHeaderTable, readStreams } from '../http/http2-reader.ts'
import { bytesWithKey } from '../http/request-text.ts'
import { type Answer, createResponseReader } from '../http/response-reader.ts'
import type { Random } from '../random.ts'
import type { Address } from '../system/gateway-process.ts'
import type { System } from '../system/system.ts'
import type { Session, Target } from '../target.ts'
import { shapes } from './socket-shapes.ts'

type StreamCase = {
  readonly shape: string
  /** Latin-1 pieces, with the placeholder of the key; each is a write of its own. */
  readonly pieces: readonly string[]
  /** How many answers there must be: streams that end, or status lines; undefined where none need be. */
  readonly answers: number | undefined
  /** What each of these may be. */
  readonly statuses: readonly number[]
  /** After so many bytes of the client, nothing of it arrives any more. */
  readonly cutAfter: number | undefined
  /** The client ends its side, and waits for the server to do so too. */
  readonly waitsForEnd: boolean
}

const path = '/api/v1/locations/district/3026'
const latin = (bytes: Buffer): string => bytes.toString('latin1')
// As long as a key, since frames contain lengths.
const key = 'svc_live_'.padEnd(keyLength, '#')
const window = (bytes: number): Buffer => {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(bytes)
  return payload
}
/** The same frame with other flags. */
const flagged = (given: Buffer, flags: number): Buffer => {
  given.writeUInt8(flags, 4)
  return given
}
/** A head in two frames: HEADERS without its end, and CONTINUATION. */
const split = (stream: number, at: number): Buffer => {
  const block = getFrame(stream, path, { 'x-api-key': key }).subarray(9)
  // Not in the middle of the key, which is put in later.
  const cut = Math.max(1, Math.floor((block.length - key.length) * at))
  return Buffer.concat([
    frame(frames.headers, 1, stream, block.subarray(0, cut)),
    frame(frames.continuation, 4, stream, block.subarray(cut)),
  ])
}
const post = (stream: number): Buffer => flagged(getFrame(stream, path, { ':method': 'POST' }), 4)

type Frames = (random: Random, stream: number) => Buffer

/** What may stand between requests, and changes nothing for them. */
const harmless: Readonly<Record<string, Frames>> = {
  ping: random => frame(frames.ping, 0, 0, random.bytes(8)),
  settings: () => frame(frames.settings, 0, 0),
  priority: (random, stream) =>
    frame(2, 0, stream + 2 * random.between(100, 200), Buffer.from([0, 0, 0, 0, 9])),
  unknown: random => frame(random.between(32, 255), random.between(0, 255), 0, random.bytes(20)),
  window: random => frame(frames.windowUpdate, 0, 0, window(random.between(1, 1_000))),
}
/** What may end the session, or only its stream. */
const hostile: Readonly<Record<string, Frames>> = {
  ...harmless,
  'a body behind a refusal': (random, stream) =>
    Buffer.concat([
      post(stream),
      ...Array.from({ length: random.between(1, 40) }, () => frame(0, 0, stream, Buffer.alloc(4_000))),
    ]),
  'a request that is given up': (_random, stream) =>
    Buffer.concat([getFrame(stream, path), frame(frames.reset, 0, stream, window(8))]),
  'pings in a flood': random =>
    Buffer.concat(Array.from({ length: 2_000 }, () => frame(frames.ping, 0, 0, random.bytes(8)))),
  'a window of nothing': (random, stream) =>
    frame(frames.windowUpdate, 0, random.pick([0, stream]), window(0)),
  'a window that overflows': () => frame(frames.windowUpdate, 0, 0, window(2 ** 31 - 1)),
  'settings out of range': random =>
    frame(frames.settings, 0, 0, Buffer.from([0, random.between(1, 6), ...random.bytes(4)])),
  'data of no stream': (random, stream) => frame(0, 0, random.pick([0, stream]), random.bytes(20)),
  'a continuation of nothing': (random, stream) => frame(frames.continuation, 4, stream, random.bytes(20)),
  'a head without an end': (_random, stream) => flagged(getFrame(stream, path), 1),
  'a head that is none': (random, stream) => frame(frames.headers, 5, stream, random.bytes(30)),
  'headers that are odd': (random, stream) =>
    getFrame(stream, random.pick(['', '*', '/\u0000', path]), {
      [random.pick(['X-Upper', 'connection', 'te', ':status', 'a b', ''])]: random.pick([
        '',
        'x',
        '\r\n',
        '\u0000',
      ]),
    }),
  goaway: random => frame(7, 0, 0, random.bytes(random.pick([8, 3, 60]))),
  'a push': (random, stream) => frame(5, 4, stream, random.bytes(20)),
  'a longer frame than there may be': random => frame(random.between(0, 9), 0, 0, Buffer.alloc(20_000)),
  'any frame': (random, stream) =>
    frame(
      random.between(0, 10),
      random.between(0, 255),
      random.pick([0, 1, stream]),
      random.bytes(random.between(0, 40)),
    ),
}

const start = latin(
  Buffer.concat([
    Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    frame(frames.settings, 0, 0, noHeaderTable),
  ]),
)

// The quota may be spent.
const fromGoodKey = [200, 429]
// Each takes a second or two.
const shareThatWaits = 0.05

/** Requests over HTTP/2, and frames of a kind among them. */
const session = (random: Random, kind: string): StreamCase => {
  const rest = { shape: kind, statuses: fromGoodKey, cutAfter: undefined, waitsForEnd: false }
  const isValid = kind === 'valid requests'
  const pieces = [start]
  let answers = 0
  const length = random.between(1, 20)
  for (let i = 0; i < length; i++) {
    const stream = 2 * i + 1
    if (isValid || random.chance(0.5)) {
      if (isValid)
        pieces.push(latin(harmless[random.pick(Object.keys(harmless))]?.(random, stream) ?? Buffer.alloc(0)))
      pieces.push(
        latin(
          random.chance(0.3)
            ? split(stream, random.fraction())
            : getFrame(stream, path, { 'x-api-key': key }),
        ),
      )
      answers += 1
    } else pieces.push(latin(hostile[kind]?.(random, stream) ?? Buffer.alloc(0)))
  }
  if (isValid) return { ...rest, pieces, answers }
  // Out of order, and with a byte that is another one.
  if (random.chance(0.3)) pieces.reverse()
  if (random.chance(0.2)) {
    const at = random.between(0, pieces.length - 1)
    const bytes = Buffer.from(pieces[at] ?? '', 'latin1')
    if (bytes.length > 0) bytes[random.between(0, bytes.length - 1)] = random.between(0, 255)
    pieces[at] = latin(bytes)
  }
  return { ...rest, pieces, answers: undefined, waitsForEnd: random.chance(shareThatWaits) }
}

const kinds = ['valid requests', ...Object.keys(hostile)]

const generate = (random: Random): StreamCase => {
  const drawn = random.fraction()
  if (drawn < 0.15)
    return {
      ...session(random, 'valid requests'),
      shape: 'a cut handshake',
      answers: undefined,
      cutAfter: random.between(0, 2_500),
      waitsForEnd: random.chance(shareThatWaits),
    }
  if (drawn < 0.35) {
    const { pieces, statuses, ending } = shapes[random.pick(Object.keys(shapes))]?.(random) ?? { pieces: [] }
    // Those that end otherwise are for the sockets.
    const answers = statuses && ending === undefined && pieces.join('').length < 10_000 ? 1 : undefined
    const waitsForEnd = answers === undefined && random.chance(shareThatWaits)
    return {
      shape: 'HTTP/1.1',
      pieces,
      answers,
      statuses: statuses?.[0] ?? [],
      cutAfter: undefined,
      waitsForEnd,
    }
  }
  return session(random, random.pick(kinds))
}

/** The client's side of a connection, which ends unseen after so many bytes. */
const cutBelow = ({ host, port }: Address, cutAfter: number): Duplex => {
  const socket = connectTcp({ host, port })
  let left = cutAfter
  const duplex = new Duplex({
    read: () => {},
    write: (bytes: Buffer, _encoding, done) => {
      const some = bytes.subarray(0, left)
      left -= some.length
      if (some.length > 0) socket.write(some)
      done()
    },
    final: done => {
      socket.end()
      done()
    },
    destroy: (_error, done) => {
      socket.destroy()
      done(null)
    },
  })
  socket.on('data', bytes => duplex.push(bytes))
  socket.on('error', () => {})
  socket.on('close', () => duplex.destroy())
  return duplex
}

const patienceMs = 10_000
// For what need not be answered.
const quietMs = 60

const run = async (system: System, given: StreamCase): Promise<Finding[]> => {
  const { shape, pieces, answers, cutAfter } = given
  const { api, isAlive } = system.gateway()
  const isHttp1 = shape === 'HTTP/1.1'
  const socket = connectTls({
    ...(cutAfter === undefined ? { host: api.host, port: api.port } : { socket: cutBelow(api, cutAfter) }),
    rejectUnauthorized: false,
    ALPNProtocols: [isHttp1 ? 'http/1.1' : 'h2'],
  })
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  const parts: Buffer[] = []
  const received = () => Buffer.concat(parts)
  let isWaitingForEnd = false
  let timer = setTimeout(end, answers === undefined ? quietMs * 5 : patienceMs)
  socket.on('error', () => {})
  socket.on('close', () => end())
  socket.on('data', (bytes: Buffer) => {
    parts.push(bytes)
    if (isWaitingForEnd) return
    if (answers !== undefined) {
      if (answersIn(received(), isHttp1).length >= answers) end()
      return
    }
    clearTimeout(timer)
    timer = setTimeout(end, quietMs)
  })
  for (const piece of pieces)
    socket.write(bytesWithKey(piece.replaceAll(key, system.keys[0].key), system.keys[0].key))
  await over
  clearTimeout(timer)
  isWaitingForEnd = true
  const hasEnded = !given.waitsForEnd || (await endOf(socket))
  socket.destroy()
  if (!isAlive()) return []
  return [
    ...check(given, received()),
    ...(hasEnded ? [] : [slowness('a connection that does not end', `${shape}: ${patienceMs} ms`)]),
  ]
}

/** Ends the client's side; whether the server ends its own in time. */
const endOf = (socket: TLSSocket): Promise<boolean> =>
  new Promise(resolve => {
    if (socket.destroyed) resolve(true)
    const timer = setTimeout(() => resolve(false), patienceMs)
    socket.once('close', () => {
      clearTimeout(timer)
      resolve(true)
    })
    socket.end()
  })

const check = ({ shape, answers, statuses }: StreamCase, received: Buffer): Finding[] => {
  const isHttp1 = shape === 'HTTP/1.1'
  const came = answersIn(received, isHttp1)
  const found = came.flatMap(answer =>
    isHttp1 ? brokenRules(answer, answer.body.length > 0) : brokenContent(answer),
  )
  if (answers === undefined) return found
  if (came.length < answers)
    found.push(slowness('a complete request without an answer', `${shape}: ${came.length} of ${answers}`))
  const wrong = came.filter(({ status }) => !statuses.includes(status))
  if (wrong.length > 0)
    found.push(
      (wrong.some(isLate) ? slowness : finding)(
        'another status than HTTP and the contract demand',
        `${shape}: ${wrong.map(({ status }) => status).join(', ')} in place of ${statuses.join(' or ')}`,
      ),
    )
  return found
}

/** The answers that came whole; over HTTP/2 without their headers, and without those whose status is in a table. */
const answersIn = (received: Buffer, isHttp1: boolean): readonly Answer[] => {
  if (isHttp1) {
    const reader = createResponseReader(() => undefined)
    reader.push(received)
    return reader.answers
  }
  return [...readStreams(received).values()].flatMap(({ status, body, isEnded }) =>
    isEnded && status !== undefined ? [{ status, body, headers: [], headBytes: 0 }] : [],
  )
}

const open = async (system: System): Promise<Session<StreamCase>> => ({
  run: given => run(system, given),
  close: async () => {},
})

function* smaller(given: StreamCase): Generator<StreamCase> {
  // The number of answers follows from the pieces.
  if (given.answers !== undefined) return
  for (let from = 0; from < given.pieces.length; from++)
    yield { ...given, pieces: given.pieces.toSpliced(from, 1) }
}

const fixture = (name: string) => new URL(`../../test/fixtures/${name}`, import.meta.url).pathname

export const streams: Target<StreamCase> = {
  name: 'streams',
  share: 2,
  checks:
    'over TLS and HTTP/2 every complete valid request is answered as the contract says; all else gets its errors or a close; connections end; memory bounded',
  batch: 200,
  atOnce: 16,
  setting: {
    env: {
      ABOHAWA_SERVER__REQUEST_TIMEOUT: '1s',
      ABOHAWA_SERVER__TLS__CERT: fixture('localhost.crt'),
      ABOHAWA_SERVER__TLS__KEY: fixture('localhost.key'),
    },
  },
  generate,
  shapeOf: ({ shape }) => shape,
  isAlone: () => false,
  smaller,
  print: ({ shape, pieces, cutAfter }) => `${shape}, cut after ${cutAfter ?? 'nothing'}: ${pieces.join('|')}`,
  open,
}
