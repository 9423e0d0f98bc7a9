// Lists element by element: what JSON.parse makes of the whole, and its refusal of what is no JSON.

import fc from 'fast-check'
import t from 'tap'
import { elementsOf } from '../../src/provider/json-elements.ts'

const whole = (text: string): unknown => {
  const value = JSON.parse(text)
  return Array.isArray(value) ? value : [value]
}

t.test('any JSON, however it is spaced, gives the elements of the whole', async t => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t', '\r\n'), (value, space) => {
      const text = ` ${JSON.stringify(value, null, space)}\n`
      t.strictSame([...elementsOf(text)], whole(text))
    }),
    { numRuns: 300 },
  )
  t.strictSame([...elementsOf('[]')], [])
  t.strictSame([...elementsOf('[ ]')], [])
  t.strictSame([...elementsOf('[{"a":"}],{\\\\\\""},[1,[2]],"x,]"]')], [{ a: '}],{\\"' }, [1, [2]], 'x,]'])
})

t.test('a text that is spoilt anywhere is refused wherever JSON.parse refuses it', async t => {
  const good = JSON.stringify([{ a: [1, 2, '"]'] }, { b: null }, [3, '\\']])
  const refuses = (parse: () => unknown): boolean => {
    try {
      parse()
      return false
    } catch (error) {
      t.equal(error instanceof SyntaxError, true, String(error))
      return true
    }
  }
  for (let at = 0; at < good.length; at++)
    for (const put of ['', ',', ']', '}', '[', '"', '\\', 'x', ' ']) {
      const text = good.slice(0, at) + put + good.slice(at + 1)
      t.equal(
        refuses(() => [...elementsOf(text)]),
        refuses(() => JSON.parse(text)),
        text,
      )
    }
  for (let length = 0; length < good.length; length++)
    t.ok(
      refuses(() => [...elementsOf(good.slice(0, length))]),
      good.slice(0, length),
    )
  for (const text of ['[1]x', '[1]]', '[1,]', '[,1]', '[1 2]', '[', '[1,,2]', '{}{}'])
    t.ok(
      refuses(() => [...elementsOf(text)]),
      text,
    )
})
