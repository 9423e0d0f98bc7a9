// Callers that open a TLS 1.3 connection for each request, with a full handshake or resuming the session of their last one, in a
// process of their own. Checks certificate, version, status and whole body of each, and that it was resumed or was not. Reads what to
// send from a file and prints one line of JSON.

import { readFile } from 'node:fs/promises'
import { connect, createSecureContext } from 'node:tls'
import { quantile } from '../row.ts'
import type { Loaded } from '../tools/wrk.ts'
import type { Handshakes } from './tls.ts'

const {
  url,
  paths: [path = '/'],
  keys: [key],
  kind,
  seconds,
  caFile,
  bodyFiles,
} = JSON.parse(await readFile(process.argv[2] ?? '', 'utf8')) as Handshakes

const callers = 16
const { hostname, port, host } = new URL(url)
const expected = await Promise.all(bodyFiles.map(file => readFile(file)))
const secureContext = createSecureContext({ ca: await readFile(caFile), minVersion: 'TLSv1.3' })
const head = `GET ${path} HTTP/1.1\r\nhost: ${host}\r\n${key === undefined ? '' : `x-api-key: ${key}\r\n`}connection: close\r\n\r\n`

type Sent = { readonly isRight: boolean; readonly isResumed: boolean; readonly ticket: Buffer | undefined }

/** One connection, from its start to its end. @param session the ticket of an earlier connection, to resume its session */
const send = (session: Buffer | undefined): Promise<Sent> => {
  const { promise, resolve } = Promise.withResolvers<Sent>()
  const chunks: Buffer[] = []
  let ticket: Buffer | undefined
  let isResumed = false
  const socket = connect({ host: hostname, port: Number(port), secureContext, session })
  socket.setNoDelay(true)
  // The close says that the response is not whole.
  socket.on('error', () => {})
  socket.once('secureConnect', () => {
    isResumed = socket.isSessionReused()
    socket.write(head)
  })
  // Over TLS 1.3 tickets come behind a full handshake. Node sends none behind a resumed one, so that one is used again.
  socket.on('session', given => {
    ticket = given
  })
  socket.on('data', (chunk: Buffer) => void chunks.push(chunk))
  socket.once('close', () => resolve({ isRight: isWhole(Buffer.concat(chunks)), isResumed, ticket }))
  return promise
}

const isWhole = (response: Buffer): boolean => {
  const end = response.indexOf('\r\n\r\n')
  return (
    response.toString('latin1', 9, 12) === '200' &&
    expected.some(body => response.subarray(end + 4).equals(body))
  )
}

const times: number[] = []
let wrong = 0
const firsts = await Promise.all(Array.from({ length: callers }, () => send(undefined)))
const started = performance.now()
const end = started + seconds * 1000
await Promise.all(
  firsts.map(async ({ ticket: first }) => {
    let ticket = first
    while (performance.now() < end) {
      const began = performance.now()
      const sent = await send(kind === 'resumed' ? ticket : undefined)
      times.push(performance.now() - began)
      if (!sent.isRight || sent.isResumed !== (kind === 'resumed')) wrong += 1
      ticket = sent.ticket ?? ticket
    }
  }),
)
const loaded: Loaded = {
  answers: times.length,
  seconds: (performance.now() - started) / 1000,
  p50: quantile(times, 0.5),
  p99: quantile(times, 0.99),
  wrong,
}
process.stdout.write(`${JSON.stringify(loaded)}\n`)
