// Lists element by element, however their bytes are cut: what JSON.parse makes of the whole, and its refusal of what is
// no JSON.

import fc from 'fast-check'
import t from 'tap'
import { elementsOf } from '../../src/provider/json-elements.ts'

const whole = (text: string): unknown => {
  const value = JSON.parse(text)
  return Array.isArray(value) ? value : [value]
}

/** The bytes of a text in pieces of this length. */
const cut = (text: string, length: number): Uint8Array[] => {
  const bytes = Buffer.from(text)
  return Array.from({ length: Math.ceil(bytes.length / length) }, (_, i) =>
    bytes.subarray(i * length, (i + 1) * length),
  )
}
const elements = (text: string, length = 1 << 16): Promise<unknown[]> =>
  Array.fromAsync(elementsOf(cut(text, length)))

t.test('any JSON, however it is spaced and cut, gives the elements of the whole', async t => {
  await fc.assert(
    fc.asyncProperty(
      fc.jsonValue({ stringUnit: 'binary' }),
      fc.constantFrom(undefined, 1, '\t', '\r\n'),
      fc.integer({ min: 1, max: 40 }),
      async (value, space, length) => {
        const text = ` ${JSON.stringify(value, null, space)}\n`
        t.strictSame(await elements(text, length), whole(text))
      },
    ),
    { numRuns: 300 },
  )
  t.strictSame(await elements('[]'), [])
  t.strictSame(await elements('[ ]', 1), [])
  const awkward = '[{"a":"}],{\\\\\\""},[1,[2]],"x,]°আ"]'
  for (const length of [1, 2, 3, 100])
    t.strictSame(await elements(awkward, length), [{ a: '}],{\\"' }, [1, [2]], 'x,]°আ'])
})

t.test('a text that is spoilt anywhere is refused wherever JSON.parse refuses it', async t => {
  const good = JSON.stringify([{ a: [1, 2, '"]'] }, { b: null }, [3, '\\']])
  const refuses = async (parse: () => unknown): Promise<boolean> => {
    try {
      await parse()
      return false
    } catch (error) {
      t.equal(error instanceof SyntaxError, true, String(error))
      return true
    }
  }
  for (let at = 0; at < good.length; at++)
    for (const put of ['', ',', ']', '}', '[', '"', '\\', 'x', ' ']) {
      const text = good.slice(0, at) + put + good.slice(at + 1)
      const expected = await refuses(() => JSON.parse(text))
      for (const length of [7, 100]) t.equal(await refuses(() => elements(text, length)), expected, text)
    }
  for (let length = 0; length < good.length; length++)
    t.ok(await refuses(() => elements(good.slice(0, length))), good.slice(0, length))
  for (const text of ['[1]x', '[1]]', '[1,]', '[,1]', '[1 2]', '[', '[1,,2]', '{}{}', '', ' '])
    t.ok(await refuses(() => elements(text)), text)
})

t.test('an element is given as soon as it has come', async t => {
  const given: string[] = []
  const pieces = function* () {
    for (const piece of cut('[1,2,3]', 2)) {
      given.push('piece')
      yield piece
    }
  }
  for await (const element of elementsOf(pieces())) given.push(String(element))
  t.strictSame(given, ['piece', 'piece', '1', 'piece', '2', 'piece', '3'])
})
