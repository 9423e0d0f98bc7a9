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

t.test('an answer to HEAD has no body, whatever its length says', async t => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n'
  t.equal(read(head + ok, answer => answer === 0).answers.length, 2)
  t.equal(read(head + ok, () => undefined).answers.length, 2, 'also where nobody knows which one it is')
})

t.test('what is not there yet is waited for', async t => {
  for (const text of [
    'HTTP',
    'HTTP/1.1 200 OK\r\ncontent-le',
    'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}',
  ]) {
    const { answers, fault, isInside } = read(text)
    t.strictSame([answers.length, fault, isInside], [0, undefined, true], text)
  }
})

// The bytes, and the expected fault.
const faults: [string, RegExp][] = [
  ['garbage', /no status line/],
  ['HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n', /no status line/],
  ['HTTP/1.1 2000 OK\r\ncontent-length: 0\r\n\r\n', /no status line/],
  ['HTTP/1.1 200 OK\r\nno colon\r\n\r\n', /no header line/],
  ['HTTP/1.1 200 OK\r\nx : 1\r\n\r\n', /no header line/],
  ['HTTP/1.1 200 OK\r\n folded\r\n\r\n', /no header line/],
  ['HTTP/1.1 200 OK\r\nx: a\nb\r\n\r\n', /no header line/],
  ['HTTP/1.1 200 OK\r\nx: \xe4\r\n\r\n', /no header line/],
  ['HTTP/1.1 200 OK\r\ncontent-length: 0\r\nContent-Length: 0\r\n\r\n', /content-length stands there twice/],
  ['HTTP/1.1 200 OK\r\n\r\n{}', /a body without a length/],
  ['HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\n{}', /content-length \+1/],
  ['HTTP/1.1 200 OK\r\ncontent-length: 0\r\ntransfer-encoding: chunked\r\n\r\n', /both/],
  ['HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n', /transfer-encoding gzip/],
  ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n', /no size of a chunk/],
  ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n', /a chunk without its end/],
  [`${ok}{}`, /no status line/],
  [
    `HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n${ok}`,
    /behind an answer that said close/,
  ],
]

t.test('whatever is not HTTP/1.1 is a fault', async t => {
  for (const [text, sentence] of faults) t.match(read(text).fault, sentence, JSON.stringify(text))
})
