// Without it a body that is cut in another place could give other weather, or exceed its bounds.

import fc from 'fast-check'
import t from 'tap'
import { elementsOf } from '../../../src/provider/open-meteo/decode.ts'
import { codePoint } from '../../support/any-text.ts'

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
const roomy = { elements: 1_000, elementBytes: 100_000, depth: 100, lists: 1_000 }
const elements = (text: string, length = 1 << 16): Promise<unknown[]> =>
  Array.fromAsync(elementsOf(cut(text, length), roomy))

t.test('any JSON, however it is spaced and cut, gives the elements of the whole', async t => {
  await fc.assert(
    fc.asyncProperty(
      fc.jsonValue({ stringUnit: codePoint }),
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

t.test('bodies that are read at once, and one after them, stay apart', async t => {
  const textOf = (letter: string, length: number): string =>
    JSON.stringify([letter, letter.repeat(length), [letter]])
  // Leaves what the next body uses again; the second of those at once grows beyond it.
  const short = textOf('a', 20_000)
  t.strictSame(await elements(short, 1_000), whole(short))
  const texts = [textOf('b', 20_000), textOf('c', 90_000)]
  const bodies = texts.map(text => elementsOf(cut(text, 1_000), roomy))
  const read: unknown[][] = [[], []]
  // Both are in the middle of their long element at the same time.
  await Promise.all(
    bodies.map(async (body, at) => {
      for await (const value of body) read[at]?.push(value)
    }),
  )
  t.same(read, texts.map(whole))
  const left = elementsOf(cut(short, 1_000), roomy)
  await left.next()
  await left.return(undefined)
  t.strictSame(await elements(short, 999), whole(short))
})

t.test('an element is given as soon as it has come', async t => {
  const given: string[] = []
  const pieces = function* () {
    for (const piece of cut('[1,2,3]', 2)) {
      given.push('piece')
      yield piece
    }
  }
  for await (const element of elementsOf(pieces(), roomy)) given.push(String(element))
  t.strictSame(given, ['piece', 'piece', '1', 'piece', '2', 'piece', '3'])
})

t.test('the bound of a text is checked before parsing, however it is cut', async t => {
  const bounds = { elements: 3, elementBytes: 20, depth: 3, lists: 5 }
  const given: [string, string | undefined][] = [
    ['[1,2,3]', undefined],
    ['[1,2,3,]', 'too_many_elements'],
    [`[1,2,3,${'['.repeat(50)}`, 'too_many_elements'],
    ['[[[[]]]]', undefined],
    ['[[[[[', 'too_deep'],
    ['{"a":{"b":{}}}', undefined],
    ['{"a":{"b":{"c":{', 'too_deep'],
    ['[[[],[],[],[]],[[],[],[],[]]]', undefined],
    ['[[[],[],[],[],[', 'too_many_lists'],
    ['[[{},{},{},{},{', 'too_many_lists'],
    [`["${'a'.repeat(18)}","${'b'.repeat(18)}"]`, undefined],
    [`["${'a'.repeat(18)}",  "${'b'.repeat(18)}`, 'too_large'],
    [`["${'a'.repeat(20)}`, 'too_large'],
    [`"${'a'.repeat(18)}"`, undefined],
    [`"${'a'.repeat(20)}`, 'too_large'],
    [`[${' '.repeat(21)}`, 'too_large'],
    // Brackets inside a string are no lists.
    ['["[[[[[[[[[[[[[[[["]', undefined],
    [`["\\"[[[[[[[[[[[[[["]`, undefined],
  ]
  for (const [text, why] of given)
    for (const length of [1, 2, 7, 100]) {
      const read = Array.fromAsync(elementsOf(cut(text, length), bounds))
      if (why) await t.rejects(read, { code: 'provider_garbled', refused: why }, text)
      else t.strictSame(await read, whole(text), text)
    }
})

t.test('an element in pieces is copied a few times, not once for each of them', async t => {
  const text = JSON.stringify([{ a: 'x'.repeat(400_000) }])
  const typedArray = Object.getPrototypeOf(Uint8Array.prototype)
  const { set } = typedArray
  let copied = 0
  const counted = function (this: Uint8Array, from: Uint8Array, at?: number): void {
    copied += from.length
    set.call(this, from, at)
  }
  t.intercept(typedArray, 'set', { value: counted })
  const bounds = { elements: 1, elementBytes: 500_000, depth: 2, lists: 2 }
  t.strictSame(await Array.fromAsync(elementsOf(cut(text, 100), bounds)), whole(text))
  t.ok(copied >= 400_000 && copied < 4 * text.length, `${copied} bytes`)
})

t.test('a text that is more than one value is refused where the second begins', async t => {
  let read = 0
  const endless = function* () {
    yield Buffer.from('{"a":1}')
    for (; ; read++) yield Buffer.from(',')
  }
  await t.rejects(Array.fromAsync(elementsOf(endless(), roomy)), { name: 'SyntaxError' })
  t.equal(read, 0)
})
