// What CI prints of the tests: a line for each process of them, and of what failed all that is known. For tap's `reporter`. Those
// that come with tap draw a moving picture for people, which costs one in thirty seconds of the whole suite.

import { Transform, type TransformCallback } from 'node:stream'

const indentOfSubtest = 4

/** Reads TAP, and writes lines of text. */
// biome-ignore lint/style/noDefaultExport: tap takes the default one.
export default class FailuresReporter extends Transform {
  #rest = ''
  #passed = 0
  #failed = 0
  /** The names of the tests that the present line is within. */
  #within: string[] = []
  /** How far the lines of the failure are indented whose details come. */
  #details: number | undefined

  constructor() {
    super({ decodeStrings: true, encoding: 'utf8' })
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    const lines = (this.#rest + chunk.toString('latin1')).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) this.#take(line)
    done()
  }

  override _flush(done: TransformCallback): void {
    if (this.#rest) this.#take(this.#rest)
    this.push(`${this.#passed} passed, ${this.#failed} failed\n`)
    done()
  }

  #take(line: string): void {
    const text = line.trimStart()
    const indent = line.length - text.length
    const depth = Math.floor(indent / indentOfSubtest)
    if (this.#details !== undefined) {
      if (indent > this.#details) {
        this.#print(line.slice(this.#details))
        return
      }
      this.#details = undefined
    }
    if (text.startsWith('# Subtest: ')) {
      // Its lines are as far indented as those within, or as the line that ends it.
      this.#within = [...this.#within.slice(0, depth), text.slice('# Subtest: '.length)]
      return
    }
    const isTest = text.includes(' # time=')
    if (text.startsWith('ok ')) {
      if (indent === 0) this.#print(text)
      if (!isTest) this.#passed += 1
    }
    if (!text.startsWith('not ok ') || /# (?:TODO|SKIP)/i.test(text)) return
    this.#print([...this.#within.slice(0, depth), text].join(' > '))
    if (!isTest) this.#failed += 1
    // A test that failed by what is within it says nothing new.
    if (indent === 0 || !isTest) this.#details = indent
  }

  #print(line: string): void {
    this.push(`${Buffer.from(line, 'latin1').toString('utf8')}\n`)
  }
}
