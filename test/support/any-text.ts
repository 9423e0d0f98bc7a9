// Texts of any code points but halves of surrogates, for fast-check: as its unit `binary`, which builds a table of all of them
// once for each file, a second of processor time, to see whether it can make words such as `__proto__` of them.

import fc from 'fast-check'

const firstSurrogate = 0xd800
const surrogates = 0x800

/** One of these, for what takes a unit. */
export const codePoint = fc.nat(0x10ffff - surrogates).map(
  n => String.fromCodePoint(n < firstSurrogate ? n : n + surrogates),
  text => {
    const [first, ...more] = typeof text === 'string' ? text : []
    const point = first?.codePointAt(0)
    if (point === undefined || more.length > 0) throw new Error('no single code point')
    return point < firstSurrogate ? point : point - surrogates
  },
)

/** @param lengths counts code points */
export const anyText = (lengths: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> =>
  fc.string({ unit: codePoint, ...lengths })
