// Reading head by head: how many requests Node's parser takes at once, over a real connection.

import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { type PacedReading, readPaced } from '../../src/edge/connection/paced-reading.ts'
import { until } from '../support/until.ts'

const head = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nhost: test\r\n${more}\r\n`

/** A server that takes as many requests as `allow` says. */
const open = async (t: Test) => {
  const came: string[] = []
  let allowed = 0
  let reading: PacedReading | undefined
  let accepted: Socket | undefined
  const server = createServer((request, response) => {
    came.push(request.url ?? '')
    request.resume()
    response.end(request.url)
  })
  server.on('connection', socket => {
    accepted = socket
    reading = readPaced(socket, {
      mayRead: () => {
        if (allowed === 0) return false
        allowed -= 1
        return true
      },
      onReadable: () => {
        reading?.resume()
      },
      onResume: () => reading?.resume(),
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').setNoDelay()
  t.teardown(() => {
    client.destroy()
    server.close()
  })
  let answers = ''
  client.on('data', chunk => {
    answers += chunk
  })
  return {
    came,
    answers: () => answers,
    send: async (text: string) => {
      client.write(text, 'latin1')
      await until('it arrived', () => (accepted?.bytesRead ?? 0) >= client.bytesWritten)
    },
    allow: (heads: number) => {
      allowed = heads
      reading?.resume()
    },
    end: () => reading?.end(),
    rest: () => accepted?.readableLength,
  }
}

t.test('each permission takes one request of those that came together', async t => {
  const { came, send, allow, rest } = await open(t)
  await send(['/1', '/2', '/3'].map(path => head(path)).join(''))
  t.strictSame(came, [])
  for (const [i, expected] of [['/1'], ['/1', '/2'], ['/1', '/2', '/3']].entries()) {
    allow(1)
    t.strictSame(came, expected)
    t.equal(rest(), (2 - i) * head('/1').length, 'the others stay on the socket')
  }
})

t.test('a long head takes some permissions, and the request behind it one of its own', async t => {
  const { came, send, allow } = await open(t)
  const long = head('/long', `x-long: ${'a'.repeat(9_000)}\r\n`)
  await send(long + head('/next'))
  allow(2)
  t.strictSame(came, [], '8 KiB of it')
  allow(1)
  t.strictSame(came, ['/long'])
  allow(1)
  t.strictSame(came, ['/long', '/next'])
})

t.test('bytes that end no head are taken as they come', async t => {
  const { came, send, allow } = await open(t)
  for (const part of ['GET /parts HT', 'TP/1.1\r\nhost: test\r\n\r', '\n']) {
    t.strictSame(came, [])
    await send(part)
    allow(1)
  }
  t.strictSame(came, ['/parts'])
})

t.test('the connection is given back once nothing waits, and Node reads it', async t => {
  const { came, answers, send, allow, end } = await open(t)
  await send(head('/1') + head('/2'))
  t.equal(end(), false, 'unread bytes keep it')
  allow(2)
  t.strictSame(came, ['/1', '/2'])
  t.equal(end(), true)
  await send(head('/3') + head('/4'))
  await until('all are answered', () => answers().endsWith('/4'))
  t.strictSame(came, ['/1', '/2', '/3', '/4'])
})
