// A loader for machines without wrk: `node loader.ts <options as JSON>`. Connections are opened first, requests are ready
// bytes, and of an answer nothing is read but its status and its end.

import { once } from 'node:events'
import { connect } from 'node:net'
import { sorted } from '../row.ts'
import type { Load, LoadOptions } from './load.ts'

const { url, keys, headers, status, connections, seconds } = JSON.parse(process.argv[2] ?? '') as LoadOptions
const { hostname, port, pathname, search } = new URL(url)
const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
const requests = keys.map(key =>
  Buffer.from(
    `GET ${pathname}${search} HTTP/1.1\r\nhost: bench\r\n${key ? `x-api-key: ${key}\r\n` : ''}${lines.join('')}\r\n`,
  ),
)

const times: number[] = []
let wrong = 0
let asked = 0

const runOne = async (end: number): Promise<void> => {
  const socket = connect(Number(port), hostname).setNoDelay(true)
  await once(socket, 'connect')
  const { promise, resolve } = Promise.withResolvers<void>()
  let sentAt = 0
  let left = -1
  let head = ''
  const ask = (): void => {
    sentAt = performance.now()
    if (sentAt >= end) {
      socket.destroy()
      resolve()
      return
    }
    head = ''
    left = -1
    socket.write(requests[asked++ % requests.length] as Buffer)
  }
  const answered = (): void => {
    times.push(performance.now() - sentAt)
    if (Number(head.slice(9, 12)) !== status) wrong += 1
    ask()
  }
  socket.on('data', (chunk: Buffer) => {
    if (left === -1) {
      const at = chunk.indexOf('\r\n\r\n')
      head += chunk.toString('latin1', 0, at === -1 ? chunk.length : at)
      if (at === -1) return
      left = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0) - (chunk.length - at - 4)
    } else left -= chunk.length
    if (left <= 0) answered()
  })
  socket.on('error', () => {
    wrong += 1
  })
  socket.on('close', () => resolve())
  ask()
  await promise
}

const started = performance.now()
await Promise.all(Array.from({ length: connections }, () => runOne(started + seconds * 1000)))
const byTime = sorted(times)
const at = (share: number): number => byTime[Math.floor(byTime.length * share)] ?? 0
const result: Load = {
  requests: times.length,
  perSecond: times.length / ((performance.now() - started) / 1000),
  p50Ms: at(0.5),
  p99Ms: at(0.99),
  wrong,
}
process.stdout.write(JSON.stringify(result))
