// Without it a password in a malformed URL could be printed or logged.

import fc from 'fast-check'
import t from 'tap'
import { redactedUrl, redactedUrls } from '../../src/common/redacted-url.ts'

const table: [url: string, shown: string][] = [
  ['redis://redis:6379/2', 'redis://redis:6379/2'],
  ['redis://redis/0?family=6', 'redis://redis/0?family=6'],
  ['https://api.open-meteo.com', 'https://api.open-meteo.com'],
  ['http://[::1]:9090/readyz', 'http://[::1]:9090/readyz'],
  ['https://example.org/a:b/c?d=e:f#g', 'https://example.org/a:b/c?d=e:f#g'],
  [
    'https://\u0986\u09ac\u09b9\u09be\u0993\u09df\u09be.example',
    'https://\u0986\u09ac\u09b9\u09be\u0993\u09df\u09be.example',
  ],
  ['redis://', 'redis://'],
  ['https:///', 'https:///'],
  ['redis://me:word@redis', 'redis://me:***@redis'],
  ['redis://:word@redis:1/2', 'redis://***@redis:1/2'],
  ['redis://word@redis', 'redis://***@redis'],
  ['redis://me:w@rd@redis', 'redis://***@redis'],
  ['redis://me:w/rd@redis', 'redis://***@redis'],
  ['redis://me:w#rd@redis', 'redis://***@redis'],
  ['redis://me:w?rd@redis', 'redis://***@redis'],
  ['redis://me:w:rd@redis', 'redis://me:***@redis'],
  ['redis://u:p@ss/word@h', 'redis://***@h'],
  ['redis://me:80/word@redis', 'redis://***@redis'],
  ['redis://me:a://b@redis', 'redis://***@redis'],
  ['redis://me:word', 'redis://***'],
  ['redis://:word', 'redis://***'],
  ['redis://redis?password=word', 'redis://redis?password=***'],
  ['redis://redis?family=6&PASSWORD=a&b#c', 'redis://redis?family=6&PASSWORD=***'],
  ['redis://redis?password=a@b', 'redis://***'],
  ['redis://me:a?token=b@redis', 'redis://***'],
  ['https://a/x?apikey=word', 'https://a/x?apikey=***'],
  ['https://a/x?latitude=1&access_token=word', 'https://a/x?latitude=1&access_token=***'],
  ['https://a/x#token=word', 'https://a/x#token=***'],
  ['https://a/x?api%6bey=word', 'https://a/x?api%6bey=***'],
  ['https://a/x?api\u200bkey=word', 'https://a/x?api\u200bkey=***'],
  ['redis://me:pass\ufeffword@redis', 'redis://***@redis'],
  ['redis://me:pass\u200bword@redis', 'redis://me:***@redis'],
  ['redis://me:pass\u00a0\u3000word@redis', 'redis://***@redis'],
]

t.test('a URL shows its host and user, and no password', async t => {
  for (const [url, shown] of table) {
    t.equal(redactedUrl(url), shown)
    t.equal(redactedUrls(url), shown)
    for (const [before, after] of [
      ['connect to ', ''],
      ['', ' failed'],
      ['connect to "', '", which failed'],
      ['it is (', '), no more'],
      ["'", "';"],
      ['see ', '.'],
      ['one\n', '\ntwo'],
    ])
      t.equal(redactedUrls(before + url + after), before + shown + after)
  }
})

t.test('a text in place of a URL hides a password with blanks, and without a scheme', async t => {
  t.equal(redactedUrl('redis://me:pass word@redis'), 'redis://***@redis')
  t.equal(redactedUrl('redis://me:pass\nword@redis'), 'redis://***@redis')
  t.equal(redactedUrl('me:word@redis:6379'), 'me:***@redis:6379')
  t.equal(redactedUrl('redis:/me:word@redis'), '***@redis')
  t.equal(redactedUrl('redis:me:word'), '***')
  t.equal(redactedUrl('localhost:6379'), 'localhost:6379')
})

t.test('sentences without a URL are left as they are, and hiding twice is hiding once', async t => {
  for (const text of ['a@b.example: c', 'one.yaml:3:4: x is "y"', 'at 12:30://', '', 'Redis failed: timeout'])
    t.equal(redactedUrls(text), text)
  const part = fc.oneof(
    fc.constantFrom('://', '@', 'redis://', '?password=', ' ', ':', '/', '"', '***', 'http://a:1'),
    fc.string({ maxLength: 4 }),
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), parts => {
      const once = redactedUrls(parts.join(''))
      return redactedUrls(once) === once
    }),
    { numRuns: 5_000 },
  )
})

// Work that grows with the square of the length would reach the time limit of the test.
t.test('long and hostile text costs what its length costs', async () => {
  for (const piece of ['a', 'a:', '://', 'a://', '@', '?', '?key', '&a', '"', '[', 'a://b@?token=']) {
    const text = piece.repeat(1_000_000 / piece.length)
    redactedUrls(text)
    redactedUrls(`x://${text}`)
    redactedUrl(text)
    redactedUrl(`x://${text}`)
  }
})
