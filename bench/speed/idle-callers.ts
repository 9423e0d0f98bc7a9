// Callers that rest: a process of its own that opens connections, sends one request on each, checks the whole answer and keeps the
// connection. For each line on standard input it sends one more request on each connection, so that none is idle for too long, and
// prints how many answered.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { forAll } from '../../test/scenarios/set-up.ts'

const [url = '', path = '', key = '', wanted = ''] = process.argv.slice(2)
const { hostname, port, host } = new URL(url)
const request = `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nx-api-key: ${key}\r\n\r\n`
const atOnce = 50

const sockets: Socket[] = []

const open = async (): Promise<void> => {
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  await once(socket, 'connect')
  sockets.push(socket)
}

/** Whether a request got its whole answer on a connection that stays. */
const ask = (socket: Socket): Promise<boolean> =>
  new Promise(resolve => {
    let [head, received] = ['', 0]
    const done = (isRight: boolean): void => {
      socket.off('data', read).off('close', lost)
      resolve(isRight)
    }
    const lost = (): void => done(false)
    const read = (chunk: Buffer): void => {
      if (received === 0) head = chunk.toString('latin1')
      received += chunk.length
      const bodyAt = head.indexOf('\r\n\r\n') + 4
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(head.slice(0, bodyAt))?.[1])
      if (!head.startsWith('HTTP/1.1 200 ') || !(received < bodyAt + length))
        done(received === bodyAt + length)
    }
    if (socket.destroyed) {
      resolve(false)
      return
    }
    socket.on('data', read).on('close', lost)
    socket.write(request)
  })

const askAll = async (): Promise<void> => {
  let right = 0
  await forAll(sockets, atOnce, async socket => {
    if (await ask(socket)) right += 1
  })
  process.stdout.write(`${JSON.stringify({ right })}\n`)
}

await forAll(Array.from({ length: Number(wanted) }), atOnce, async () => {
  await open()
  const socket = sockets.at(-1)
  if (socket && !(await ask(socket))) socket.destroy()
})
process.stdout.write(`${JSON.stringify({ right: sockets.filter(({ destroyed }) => !destroyed).length })}\n`)
for await (const _line of createInterface({ input: process.stdin })) await askAll()
