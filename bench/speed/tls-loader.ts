// Callers that open a TLS 1.3 connection for each request, with a full handshake or resuming the session of their last one, in a
// process of their own. Checks certificate, version, status and whole body of each, and counts the connections that were really
// resumed. Reads the workload from a file and prints one line of JSON.

import { readFile } from 'node:fs/promises'
import { connect, createSecureContext } from 'node:tls'
import type { Workload } from './load.ts'
import { loadedOf } from './loaded.ts'

const {
  url,
  paths: [path = '/'],
  keys: [key],
  handshakes,
  seconds,
} = JSON.parse(await readFile(process.argv[2] ?? '', 'utf8')) as Workload & { seconds: number }
if (!handshakes) throw new Error('the workload does not say which handshakes')

const callers = 16
const { hostname, port, host } = new URL(url)
const expected = await readFile(handshakes.bodyFile)
const secureContext = createSecureContext({ ca: await readFile(handshakes.caFile), minVersion: 'TLSv1.3' })
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
  return response.toString('latin1', 9, 12) === '200' && response.subarray(end + 4).equals(expected)
}

const times: number[] = []
let [wrong, resumed] = [0, 0]
const firsts = await Promise.all(Array.from({ length: callers }, () => send(undefined)))
const started = performance.now()
const end = started + seconds * 1000
await Promise.all(
  firsts.map(async ({ ticket: first }) => {
    let ticket = first
    while (performance.now() < end) {
      const began = performance.now()
      const sent = await send(handshakes.kind === 'resumed' ? ticket : undefined)
      times.push(performance.now() - began)
      if (!sent.isRight) wrong += 1
      if (sent.isResumed) resumed += 1
      ticket = sent.ticket ?? ticket
    }
  }),
)
process.stdout.write(`${JSON.stringify({ ...loadedOf(times, started, wrong), resumed })}\n`)
