// The fuzzer's strict HTTP reader: one that forgave anything would find nothing.

import t from 'tap'
import { createResponseReader, type IsHead } from '../../fuzz/http/response-reader.ts'

const read = (text: string, isHead: IsHead = () => false, pieceLength = text.length || 1) => {
  const reader = createResponseReader(isHead)
  const bytes = Buffer.from(text, 'latin1')
  for (let i = 0; i < bytes.length; i += pieceLength) reader.push(bytes.subarray(i, i + pieceLength))
  return reader
}

const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'

t.test('whole answers are read one after the other, however they are cut', async t => {
  const text = `${ok}HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 304 Not Modified\r\netag: "x"\r\n\r\nHTTP/1.1 400 Bad Request\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n`
  for (const pieceLength of [1, 7, 1_000]) {
    const { answers, fault, isInside } = read(text, undefined, pieceLength)
    t.equal(fault, undefined)
    t.strictSame(
      answers.map(({ status, body }) => [status, body.toString()]),
      [
        [200, '{}'],
        [304, ''],
        [400, 'abcd'],
      ],
    )
    t.equal(isInside, false)
  }
})

t.test('an answer to HEAD has no body, and what is not there yet is waited for', async t => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n'
  t.equal(read(head + ok, answer => answer === 0).answers.length, 2)
  t.equal(read(head + ok, () => undefined).answers.length, 2, 'also where nobody knows which one it is')
  for (const text of ['HTTP', 'HTTP/1.1 200 OK\r\ncontent-le', ok.slice(0, -1)])
    t.match(read(text), { answers: [], fault: undefined, isInside: true }, text)
})

// The bytes, and the expected fault.
const faults: [head: string, RegExp][] = [
  ['garbage', /no status line/],
  ['HTTP/1.0 200 OK\r\ncontent-length: 0', /no status line/],
  ['HTTP/1.1 200 OK\r\nx : 1', /no header line/],
  ['HTTP/1.1 200 OK\r\nx: a\nb', /no header line/],
  ['HTTP/1.1 200 OK\r\ncontent-length: 0\r\nContent-Length: 0', /content-length stands there twice/],
  ['HTTP/1.1 200 OK', /a body without a length/],
  ['HTTP/1.1 200 OK\r\ncontent-length: +1', /content-length \+1/],
  ['HTTP/1.1 200 OK\r\ncontent-length: 0\r\ntransfer-encoding: chunked', /both/],
  ['HTTP/1.1 200 OK\r\ntransfer-encoding: gzip', /transfer-encoding gzip/],
  ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz', /no size of a chunk/],
  ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc', /a chunk without its end/],
  ['HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0', /behind an answer that said close/],
]

t.test('whatever is not HTTP/1.1 is a fault', async t => {
  for (const [head, sentence] of faults) t.match(read(`${head}\r\n\r\n{}`).fault, sentence, head)
})
