// Counters, histograms and gauges: plain numbers, and their lines for Prometheus when metrics are read. The client library looks up labels
// on each increment and at each scrape, which costs more than the rest of a hit.

/** The existing metrics, in the order of their declaration. */
export type Counters = {
  readonly countAll: (name: string, help: string) => (amount?: number) => void
  readonly countBy: (name: string, help: string, labels: Labels, known: Known) => Count
  readonly timeBy: (name: string, help: string, labels: Labels, bounds: Bounds, known: Known) => Time
  readonly timeAll: (name: string, help: string, bounds: Bounds) => (seconds: number) => void
  /** Read at each scrape; NaN where it is not known. */
  readonly gauge: (name: string, help: string, read: () => number, type?: Type) => void
  /** The same for each value of a label. */
  readonly gaugeBy: (label: string, name: string, help: string, read: () => Iterable<Amount>) => void
  /** In the text format of Prometheus. */
  text(): string
}

type Type = 'counter' | 'gauge' | 'histogram'
type Amount = readonly [value: string, amount: number]

/** The upper bounds of the buckets in seconds, rising. */
type Bounds = readonly number[]

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
  /** Adds a duration, in seconds, to the series of these label values. */
  (first: string, second: string | number, seconds: number): void
  /** `counts` by bucket, with one more than the bounds for what took longer. */
  all(): readonly (Labelled & { readonly counts: readonly number[] })[]
}

type Labelled = { readonly first: string | number; readonly second: string | number }
export type Counted = Labelled & { readonly count: number }

export const createCounters = (): Counters => {
  const texts: (() => string)[] = []
  const declare = (name: string, help: string, type: Type, lines: () => readonly string[]): void => {
    const head = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`
    texts.push(() => head + lines().join(''))
  }
  const gauge: Counters['gauge'] = (name, help, read, type = 'gauge') =>
    declare(name, help, type, () => [lineOf(name, read())])
  const table = <Value>(labels: Labels, known: Known, make: (label: string, labelled: Labelled) => Value) => {
    const values = new Map<LabelValue, Map<LabelValue, Value>>()
    // Nearly all are the same as the last.
    let last: Value | undefined
    let [lastFirst, lastSecond]: [LabelValue, LabelValue] = ['', '']
    const of = (first: LabelValue, second: LabelValue): Value => {
      if (last !== undefined && lastFirst === first && lastSecond === second) return last
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
      last = value
      lastFirst = first
      lastSecond = second
      return value
    }
    for (const [first, second = ''] of known) of(first, second)
    return { of, all: () => [...values.values()].flatMap(group => [...group.values()]) }
  }

  return {
    countAll: (name, help) => {
      let sum = 0
      gauge(name, help, () => sum, 'counter')
      return (amount = 1) => {
        sum += amount
      }
    },
    countBy: (name, help, labels, known) => {
      const { of, all } = table(labels, known, (label, labelled) => ({
        series: `${name}{${label}}`,
        ...labelled,
        count: 0,
      }))
      declare(name, help, 'counter', () => all().map(({ series, count }) => lineOf(series, count)))
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
    timeBy: (name, help, labels, bounds, known) => {
      const { of, all } = table(labels, known, (label, labelled) => ({
        ...labelled,
        ...createHistogram(name, label, bounds),
      }))
      declare(name, help, 'histogram', () => all().flatMap(linesOf))
      const time = (first: string, second: string | number, seconds: number): void =>
        add(of(first, second), bounds, seconds)
      return Object.assign(time, { all })
    },
    timeAll: (name, help, bounds) => {
      const all = createHistogram(name, '', bounds)
      declare(name, help, 'histogram', () => linesOf(all))
      return seconds => add(all, bounds, seconds)
    },
    gauge,
    gaugeBy: (label, name, help, read) =>
      declare(name, help, 'gauge', () =>
        Array.from(read(), ([value, amount]) => lineOf(`${name}{${label}="${value}"}`, amount)),
      ),
    text: () => texts.map(text => text()).join('\n'),
  }
}

/** Counts an event and records its age in ms, in one call, so that a hit passes one file. */
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
  /** Of each bucket, then of the sum and the count. */
  readonly series: readonly string[]
}

const createHistogram = (name: string, label: string, bounds: Bounds): Histogram => ({
  sum: 0,
  counts: new Array<number>(bounds.length + 1).fill(0),
  series: [
    ...[...bounds, '+Inf'].map(le => `${name}_bucket{le="${le}"${label === '' ? '' : `,${label}`}}`),
    ...['sum', 'count'].map(part => `${name}_${part}${label === '' ? '' : `{${label}}`}`),
  ],
})

const add = (to: Histogram, bounds: Bounds, seconds: number): void => {
  to.sum += seconds
  let bucket = 0
  while (seconds > (bounds[bucket] ?? Number.POSITIVE_INFINITY)) bucket += 1
  to.counts[bucket] = (to.counts[bucket] ?? 0) + 1
}

const linesOf = ({ sum, counts, series }: Histogram): string[] => {
  let below = 0
  const values = counts.map(count => {
    below += count
    return below
  })
  return [...values, sum, below].map((value, i) => lineOf(String(series[i]), value))
}

const lineOf = (series: string, value: number): string =>
  `${series} ${String(value).replace('Infinity', 'Inf')}\n`

type LabelValue = string | number

// All values are words of the code, in which nothing has to be escaped.
const labelled = ([first, second]: Labels, one: LabelValue, other: LabelValue): string =>
  second === undefined ? `${first}="${one}"` : `${first}="${one}",${second}="${other}"`
