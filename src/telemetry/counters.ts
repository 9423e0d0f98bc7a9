// Counters and histograms of the hot path: plain numbers, and their lines for Prometheus when metrics are read. The client
// library's own look up their labels on each increment and at each scrape, which costs more than the rest. metrics.ts
// declares them.

/** The existing counters, in the order of their declaration. */
export type Counters = {
  readonly countBy: (named: Named, labels: Labels, known: Known) => Count
  readonly timeBy: (named: Named, labels: Labels, bounds: readonly number[], known: Known) => Time
  readonly timeAll: (named: Named, bounds: readonly number[]) => (seconds: number) => void
  /** In the text format of Prometheus. */
  text(): string
}

type Named = { readonly name: string; readonly help: string }

/** The names of one or two labels. */
type Labels = readonly [string, string?]

/** The values of the labels that are there from the start, at 0. */
type Known = readonly (readonly [string, (string | number)?])[]

type Count = {
  /** Adds one to the count of these values of the labels. */
  (first: string, second?: string): void
  all(): readonly Counted[]
}

export type Time = {
  /** Adds a duration to those of these values of the labels. */
  (first: string, second: string | number, seconds: number): void
  /** `counts` by bucket, with one more than the bounds for what took longer. */
  all(): readonly (Labelled & { readonly counts: readonly number[] })[]
}

type Labelled = { readonly first: string | number; readonly second: string | number }
export type Counted = Labelled & { readonly count: number }

/** Bounds are the upper bounds of the buckets in seconds, rising. */
export const createCounters = (): Counters => {
  const texts: (() => string)[] = []
  const declare = ({ name, help }: Named, type: 'counter' | 'histogram', lines: () => string): void => {
    const head = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
    texts.push(() => head + lines())
  }
  const table = <Value>(labels: Labels, known: Known, make: (label: string, labelled: Labelled) => Value) => {
    const values = new Map<LabelValue, Map<LabelValue, Value>>()
    const of = (first: LabelValue, second: LabelValue): Value => {
      let group = values.get(first)
      if (!group) {
        group = new Map()
        values.set(first, group)
      }
      let value = group.get(second)
      if (value === undefined) {
        value = make(labelled(labels, first, second), { first, second })
        group.set(second, value)
      }
      return value
    }
    for (const [first, second = ''] of known) of(first, second)
    return { of, all: () => [...values.values()].flatMap(group => [...group.values()]) }
  }

  return {
    countBy: (named, labels, known) => {
      const { of, all } = table(labels, known, (label, labelled) => ({
        line: `${named.name}{${label}} `,
        ...labelled,
        count: 0,
      }))
      declare(named, 'counter', () =>
        all()
          .map(({ line, count }) => `${line}${count}\n`)
          .join(''),
      )
      // A caller that passes more than the label's value, such as the client, makes no further series.
      const count =
        labels.length === 1
          ? (first: string): void => {
              of(first, '').count += 1
            }
          : (first: string, second = ''): void => {
              of(first, second).count += 1
            }
      return Object.assign(count, { all })
    },
    timeBy: (named, labels, bounds, known) => {
      const { of, all } = table(labels, known, (label, labelled) => ({
        ...labelled,
        ...createHistogram(named.name, label, bounds),
      }))
      declare(named, 'histogram', () => all().map(textOf).join(''))
      const time = (first: string, second: string | number, seconds: number): void =>
        add(of(first, second), bounds, seconds)
      return Object.assign(time, { all })
    },
    timeAll: (named, bounds) => {
      const all = createHistogram(named.name, '', bounds)
      declare(named, 'histogram', () => textOf(all))
      return seconds => add(all, bounds, seconds)
    },
    text: () => texts.map(text => text()).join('\n'),
  }
}

/** Counts a thing, and adds its age in ms to the ages of all of them; of both at once, so that a hit passes one file. */
export const countAndTime =
  (count: (first: string, second: string) => void, time: (seconds: number) => void) =>
  (first: string, second: string, ageMs: number): void => {
    count(first, second)
    // A clock that goes back makes nothing younger than new.
    time(ageMs > 0 ? ageMs / 1000 : 0)
  }

type Histogram = {
  sum: number
  readonly counts: number[]
  /** The beginning of each bucket's line, then of the sum's and the count's. */
  readonly lines: readonly string[]
}

const createHistogram = (name: string, label: string, bounds: readonly number[]): Histogram => ({
  sum: 0,
  counts: new Array<number>(bounds.length + 1).fill(0),
  lines: [
    ...[...bounds, '+Inf'].map(le => `${name}_bucket{le="${le}"${label === '' ? '' : `,${label}`}} `),
    ...['sum', 'count'].map(part => `${name}_${part}${label === '' ? '' : `{${label}}`} `),
  ],
})

const add = (to: Histogram, bounds: readonly number[], seconds: number): void => {
  to.sum += seconds
  let bucket = 0
  while (seconds > (bounds[bucket] ?? Number.POSITIVE_INFINITY)) bucket += 1
  to.counts[bucket] = (to.counts[bucket] ?? 0) + 1
}

const textOf = ({ sum, counts, lines }: Histogram): string => {
  let below = 0
  const values = counts.map(count => {
    below += count
    return below
  })
  return [...values, sum, below].map((value, i) => `${lines[i]}${value}\n`).join('')
}

type LabelValue = string | number

// All values are words of the code, in which nothing has to be escaped.
const labelled = ([first, second]: Labels, one: LabelValue, other: LabelValue): string =>
  second === undefined ? `${first}="${one}"` : `${first}="${one}",${second}="${other}"`
