// Without it a new Node could change the bytes of responses, or a slow client could get bytes of another one.

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

t.test('TLS and clients that are behind get bytes of their own, others share a block', async t => {
  const blocks: ArrayBufferLike[] = []
  const writeTo = (more: object, isBehind = false): void => {
    const socket = Object.assign(
      new Duplex({
        read: () => {},
        write: (chunk: Buffer, _encoding, done) => {
          blocks.push(chunk.buffer)
          if (!isBehind) done()
        },
      }),
      more,
    )
    if (isBehind) socket.write(Buffer.from('not taken'))
    const request = Object.assign(new IncomingMessage(socket as Socket), {
      method: 'GET',
      httpVersionMajor: 1,
    })
    const response = new ServerResponse(request)
    response.assignSocket(socket as Socket)
    const head = headOf(200, 'content-length: 4\r\n')
    writeDirectly(response, 200, head, [], kept, [Buffer.alloc(20_000)])
    t.teardown(() => socket.destroy())
  }
  writeTo({})
  writeTo({})
  writeTo({ encrypted: true })
  const [one, other, overTls] = blocks
  t.equal(one, other)
  t.not(overTls, one)
  t.ok((overTls?.byteLength ?? 0) >= 20_000)
  writeTo({}, true)
  writeTo({})
  t.equal(blocks.at(-1), one, 'a client that is behind took nothing of it')
})
