// The parameters of a call from the query string, a form body or a JSON body. A value is a list of texts; repeated
// parameters and commas mean the same. Knows no parameter by name.

import { Refusal } from './refusal.ts'

/** Names and texts, as the caller sent them. */
export class Parameters {
  readonly #values: ReadonlyMap<string, string>

  private constructor(values: ReadonlyMap<string, string>) {
    this.#values = values
  }

  /** A query string or a form body. */
  static fromForm(text: string): Parameters {
    const values = new Map<string, string>()
    for (const [name, value] of new URLSearchParams(text)) add(values, name, value)
    return new Parameters(values)
  }

  /** @throws Refusal when the body is no JSON object of texts, numbers and lists of them */
  static fromJson(text: string): Parameters {
    const values = new Map<string, string>()
    for (const [name, value] of Object.entries(parseObject(text))) {
      for (const item of Array.isArray(value) ? value : [value]) {
        if (item === null) continue
        if (typeof item === 'object') throw new Refusal(400, `Invalid value: '${name}' holds an object.`)
        add(values, name, String(item))
      }
    }
    return new Parameters(values)
  }

  /** The parts of a parameter, or undefined when it is absent or empty. */
  list(name: string): string[] | undefined {
    const value = this.#values.get(name)
    return value === undefined || value === '' ? undefined : value.split(',').map(part => part.trim())
  }

  /** A parameter that is no list. */
  text(name: string): string | undefined {
    return this.#values.get(name) || undefined
  }

  toObject(): Record<string, string> {
    return Object.fromEntries(this.#values)
  }
}

const add = (values: Map<string, string>, name: string, value: string): void => {
  const before = values.get(name)
  values.set(name, before === undefined ? value : `${before},${value}`)
}

const parseObject = (text: string): object => {
  try {
    const json: unknown = JSON.parse(text)
    if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json
  } catch {
    // The check below refuses it, like any other body that is no object.
  }
  throw new Refusal(400, 'Invalid value: the body is no JSON object.')
}
