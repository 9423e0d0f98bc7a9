// Without it a new Node could change the bytes of responses, or a slow client could get bytes of another one.

import { once } from 'node:events'
import { createServer, IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import t from 'tap'
import { chooseWriter, writeByWriteHead } from '../../src/api/connection/choose-writer.ts'
import {
  closedLines,
  headOf,
  keptLines,
  type WriteReady,
  writeDirectly,
} from '../../src/api/connection/connection.ts'

const kept = keptLines(75_000)

t.test('on this Node the direct way is chosen', async t => {
  t.strictSame(chooseWriter(), { write: writeDirectly })
})

t.test('a way that writes other bytes, or none, or throws is not chosen', async t => {
  const others: Record<string, WriteReady> = {
    'another header': (response, status, head, own, ...rest) =>
      writeByWriteHead(response, status, head, ['x: y\r\n', ...own], ...rest),
    nothing: response => void response.end(),
    'an error': () => {
      throw new Error('gone')
    },
    'a body to a HEAD': (response, ...given) => {
      writeDirectly(response, ...given)
      if (response.req.method === 'HEAD') response.socket?.write('body')
    },
    'a connection that is not ended': (response, ...given) =>
      void Object.assign(response, { _last: writeDirectly(response, ...given) ?? false }),
    'a response that goes on': (response, status, head, own, connection, body) => {
      const { end } = response
      response.end = () => response
      writeDirectly(response, status, head, own, connection, body)
      response.end = end
    },
    'a connection that stays': (response, status, head, own, _connection, body) =>
      writeByWriteHead(response, status, head, own, kept, body),
  }
  for (const [name, write] of Object.entries(others)) {
    const chosen = chooseWriter(write)
    t.equal(chosen.write, writeByWriteHead, name)
    t.ok(chosen.fault, name)
  }
})

t.test('responses that a slow client has not taken keep their bytes while others are written', async t => {
  // Of several sizes, up to more than the block that responses are put together in.
  const bodyOf = (turn: number): Buffer => Buffer.alloc(1 + ((turn * 7_919) % 80_000), `${turn},`)
  const turns = 300
  const server = createServer((request, response: ServerResponse) => {
    const turn = Number(request.url?.slice(1))
    const body = bodyOf(turn)
    const head = headOf(200, `content-type: text/plain\r\ncontent-length: ${body.length}\r\n`)
    const half = Math.floor(body.length / 2)
    writeDirectly(
      response,
      200,
      head,
      [`date: ${new Date(0).toUTCString()}\r\n`],
      turn < turns - 1 ? kept : closedLines,
      [body.subarray(0, half), body.subarray(half)],
    )
  })
  t.teardown(() => server.close())
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const client = connect({ port, host: '127.0.0.1' })
  t.teardown(() => client.destroy())
  client.pause()
  for (let turn = 0; turn < turns; turn++) client.write(`GET /${turn} HTTP/1.1\r\nhost: x\r\n\r\n`)
  // Other clients get theirs meanwhile.
  for (let turn = 0; turn < 20; turn++)
    t.ok(
      Buffer.from(await (await fetch(`http://127.0.0.1:${port}/${turn}`)).arrayBuffer()).equals(bodyOf(turn)),
      `turn ${turn} of another client`,
    )
  const expected = Array.from({ length: turns }, (_, turn) => bodyOf(turn))
  // The last response closes the connection.
  const all = Buffer.concat(await client.toArray())
  let at = 0
  let wrong = 0
  for (const body of expected) {
    at = all.indexOf('\r\n\r\n', at) + 4
    if (!all.subarray(at, at + body.length).equals(body)) wrong += 1
    at += body.length
  }
  t.equal(wrong, 0)
})

t.test('a buffer is used again once its bytes are sent, and not before', async t => {
  const buffers: ArrayBufferLike[] = []
  const sent: (() => void)[] = []
  const socketOf = (more: object, isTaken: boolean): Socket =>
    Object.assign(
      new Duplex({
        read: () => {},
        write: (chunk: Buffer, _encoding, done) => {
          if (chunk.length > 0) buffers.push(chunk.buffer)
          if (isTaken) done()
          else sent.push(done)
        },
      }),
      more,
    ) as unknown as Socket
  const bytes = 20_000
  const writeTo = (more: object, isTaken = true, socket = socketOf(more, isTaken)) => {
    const request = Object.assign(new IncomingMessage(socket), { method: 'GET', httpVersionMajor: 1 })
    const response = new ServerResponse(request)
    response.assignSocket(socket)
    const head = headOf(200, `content-length: ${bytes}\r\n`)
    writeDirectly(response, 200, head, [], kept, [Buffer.alloc(bytes)])
    t.teardown(() => socket.destroy())
    return once(response, 'finish')
  }
  writeTo({})
  writeTo({})
  const [first] = buffers
  t.equal(buffers[1], first, 'plain HTTP, taken by the kernel')

  const overTls = writeTo({ encrypted: true }, false)
  t.equal(buffers[2], first)
  writeTo({})
  t.not(buffers[3], first, 'TLS still needs its bytes')
  sent.shift()?.()
  await overTls
  writeTo({})
  t.equal(buffers[4], first, 'TLS has sent its bytes')

  const behind = socketOf({}, false)
  behind.write(Buffer.from('not taken'))
  writeTo({}, false, behind)
  while (sent.length > 0) sent.shift()?.()
  const held = buffers.at(-1)?.byteLength ?? 0
  t.ok(held >= bytes && held < 1.1 * bytes, `a client that is behind holds no more than its bytes: ${held}`)
})
