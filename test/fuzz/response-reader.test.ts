// The fuzzer's strict HTTP reader finds where each answer ends. What it does not forgive is in finds.test.ts.

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
