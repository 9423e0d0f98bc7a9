// A flood, as a separate process: `node flood.ts <url> <seconds> <file>`. The file is JSON with what it sends. Ends by itself, and
// prints what came of it as one line of JSON.

import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Flood, FloodName } from './floods.ts'

const [, , url = '', seconds = '', file = ''] = process.argv
const { name, keys, paths, rate } = JSON.parse(await readFile(file, 'utf8')) as Flood
const { hostname, port } = new URL(url)

const counts: Record<string, number> = {}
const add = (what: string, many = 1): void => {
  counts[what] = (counts[what] ?? 0) + many
}

let isOver = false
const sockets = new Set<Socket>()
/** A connection that is replaced when it is closed. @param address that it comes from, by its last number */
const keepOpen = (begin: (socket: Socket) => void, address = 2): void => {
  if (isOver) return
  const at = { port: Number(port), host: hostname, localAddress: `127.0.0.${address}` }
  const socket = connect({ ...at, noDelay: true })
  sockets.add(socket)
  socket.on('error', () => {})
  socket.on('connect', () => {
    add('connections')
    begin(socket)
  })
  socket.on('close', () => {
    sockets.delete(socket)
    if (!isOver) add('closed')
    // A while later, as one who is refused and refused again costs the machine more than the gateway.
    setTimeout(() => keepOpen(begin, address), 100)
  })
}

const everyMs = 5
/** Calls so often a second, in steps, whatever became of the previous one. */
const often = (perSecond: number, act: (i: number) => void): void => {
  const begun = performance.now()
  let i = 0
  const timer = setInterval(() => {
    if (isOver) return clearInterval(timer)
    const due = ((performance.now() - begun) / 1_000) * perSecond
    while (i < due) act(i++)
  }, everyMs)
}

const requestOf = (i: number): string =>
  `GET ${paths[i % paths.length]} HTTP/1.1\r\nhost: x\r\nx-api-key: ${keys[i % keys.length]}\r\n\r\n`

const statusLine = /HTTP\/1\.1 (\d{3})/g
const statusLineChars = 12
/** Sends requests at the rate over two connections from each address, and counts the answers by status. */
const sendAtRate = (addresses: number): void => {
  const begin = (socket: Socket): void => {
    let tail = ''
    socket.on('data', bytes => {
      const text = tail + bytes.toString('latin1')
      for (const [, status = ''] of text.matchAll(statusLine)) add(status)
      tail = text.slice(1 - statusLineChars)
    })
  }
  for (let i = 0; i < 2 * addresses; i++) keepOpen(begin, 2 + (i % addresses))
  let next: Socket[] = []
  often(rate, i => {
    if (next.length === 0) next = [...sockets].filter(socket => socket.readyState === 'open')
    const socket = next.pop()
    if (!socket) return add('not sent')
    add('sent')
    socket.write(requestOf(i))
  })
}

const floods: Readonly<Record<FloodName, () => void>> = {
  'slow heads': () => {
    for (let i = 0; i < 1_000; i++)
      keepOpen(socket => {
        socket.write(`GET ${paths[0]} HTTP/1.1\r\nhost: x\r\nx-`)
        const timer = setInterval(() => socket.write('a'), 1_000)
        socket.on('close', () => clearInterval(timer))
      })
  },
  'slow readers': () => {
    for (let i = 0; i < 200; i++)
      keepOpen(socket => {
        socket.pause()
        socket.write(requestOf(i).repeat(50))
        const timer = setInterval(() => add('bytes', socket.read(1_000)?.length ?? 0), 500)
        socket.on('close', () => clearInterval(timer))
      })
  },
  'wrong keys': () => sendAtRate(1),
  'one key': () => sendAtRate(16),
}

floods[name]()
await pause(Number(seconds) * 1_000)
isOver = true
process.stdout.write(`${JSON.stringify(counts)}\n`, () => process.exit())
