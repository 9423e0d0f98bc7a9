// The faults that the simulator can inject, one entry per fault mode.

import type { ForecastDocument, Section } from './document.ts'
import type { ForecastRequest } from './forecast-request.ts'
import { errorBody, refused } from './parameters.ts'

/** How a response is delivered: `reset` and `hang` send nothing, `stall` stops half way, `trickle` is slow but whole. */
export type Delivery = 'whole' | 'reset' | 'hang' | 'stall' | 'trickle'

/** A fault: what it changes, at each step of a call. */
export type Fault = {
  /** Sent instead of the weather. */
  readonly answer?: {
    readonly status: number
    readonly type: 'json' | 'html'
    readonly body: string
  }
  /** @throws Refusal */
  readonly request?: (request: ForecastRequest) => ForecastRequest
  readonly document?: (document: ForecastDocument) => ForecastDocument
  /** Changes the body. */
  readonly text?: (text: string) => string
  readonly delivery?: Delivery
}

/** In the fault mode `poison` every request that contains this point is refused. */
const poisoned = { latitude: 22.2, longitude: 91.1 }

const refuse = (status: number, reason: string): Fault => ({
  answer: { status, type: 'json', body: errorBody(reason) },
})

const page = (status: number, title: string): Fault => ({
  answer: {
    status,
    type: 'html',
    body: `<html>\r\n<head><title>${status} ${title}</title></head>\r\n<body>\r\n<h1>${status} ${title}</h1>\r\n</body>\r\n</html>\r\n`,
  },
})

const limit = (window: string, until: string): Fault =>
  refuse(429, `${window} API request limit exceeded. Please try again ${until}.`)

/** Refusals that also occur without an injected fault. */
export const limitFaults = {
  minute: limit('Minutely', 'in one minute'),
  hour: limit('Hourly', 'in the next hour'),
  day: limit('Daily', 'tomorrow'),
  concurrent: refuse(429, 'Too many concurrent requests'),
  tooMuchData: refuse(
    400,
    'Your API call requests too much data. Ask for fewer locations, variables or days at once.',
  ),
  keyMissing: refuse(401, 'An API key is required. Please supply the parameter apikey.'),
  keyUnknown: refuse(400, 'The supplied API key is invalid.'),
} as const satisfies Record<string, Fault>

type Damage = NonNullable<Fault['document']>

// Changes the first section of each element that passes.
const inFirst =
  (passes: (section: Section) => boolean, change: (section: Section) => readonly Section[]): Damage =>
  document => ({
    ...document,
    elements: document.elements.map(({ fields, sections }) => {
      const first = sections.find(passes)
      return {
        fields,
        sections: sections.flatMap(section => (section === first ? change(section) : section)),
      }
    }),
  })

type Column = Section['columns'][number]

const inColumns =
  (change: (column: Column) => Column): Damage =>
  document => ({
    ...document,
    elements: document.elements.map(({ fields, sections }) => ({
      fields,
      sections: sections.map(section => ({ ...section, columns: section.columns.map(change) })),
    })),
  })

/** Impossible values, as the real provider sometimes sends. */
const oddValues: Readonly<Record<string, string>> = {
  relative_humidity_2m: '101',
  precipitation: '-0.1',
  cloud_cover: '140',
  weather_code: '4',
}

const any = (): boolean => true
const hasArrays = ({ interval, times }: Section): boolean => interval === undefined && times.length > 1

const faults = {
  none: {},
  'bad-request': refuse(400, "Data corrupted at path ''. Can't read the request."),
  'too-much-data': limitFaults.tooMuchData,
  unauthorized: limitFaults.keyMissing,
  'unknown-key': limitFaults.keyUnknown,
  forbidden: refuse(403, 'This API key does not include access to this API. Please upgrade the plan.'),
  'not-found': refuse(404, 'Not Found'),
  'minutely-limit': limitFaults.minute,
  'hourly-limit': limitFaults.hour,
  'daily-limit': limitFaults.day,
  'concurrent-limit': limitFaults.concurrent,
  'internal-error': refuse(500, 'Something went wrong.'),
  'bad-gateway': page(502, 'Bad Gateway'),
  'gateway-timeout': page(504, 'Gateway Time-out'),
  overloaded: refuse(503, 'The service is overloaded'),
  empty: { answer: { status: 200, type: 'json', body: '' } },
  'cut-off': { text: text => text.slice(0, Math.floor(text.length / 2)) },
  'streaming-error': {
    text: text =>
      `${text.slice(0, Math.floor(text.length / 3))}Unexpected error while streaming data: timeout`,
  },
  'header-only': {
    document: document => ({
      ...document,
      elements: document.elements.map(({ fields }) => ({ fields, sections: [] })),
    }),
  },
  reset: { delivery: 'reset' },
  hang: { delivery: 'hang' },
  stall: { delivery: 'stall' },
  'wrong-count': {
    document: ({ elements, list }) => ({
      list: true,
      elements: list ? elements.slice(0, -1) : [...elements, ...elements],
    }),
  },
  'wrong-offset': { request: request => ({ ...request, offsetSeconds: 0 }) },
  'missing-section': { document: inFirst(any, () => []) },
  'missing-variable': {
    document: inFirst(any, section => [{ ...section, columns: section.columns.slice(0, -1) }]),
  },
  'short-array': {
    document: inFirst(hasArrays, section => [
      {
        ...section,
        columns: section.columns.map((column, i) =>
          i === section.columns.length - 1 ? { ...column, values: column.values.slice(0, -1) } : column,
        ),
      },
    ]),
  },
  'irregular-times': {
    document: inFirst(hasArrays, section => {
      const middle = Math.floor(section.times.length / 2)
      const times = section.times.map((time, i) => (i === middle ? (section.times[i - 1] ?? time) : time))
      return [{ ...section, times }]
    }),
  },
  'all-null': {
    document: inColumns(({ name, values }) => ({
      name,
      unit: 'undefined',
      values: values.map(() => 'null'),
    })),
  },
  // Every fifth step of every column, including the first.
  gaps: {
    document: inColumns(column => ({
      ...column,
      values: column.values.map((value, i) => (i % 5 === 0 ? 'null' : value)),
    })),
  },
  // Every twentieth step of some columns, including the first.
  'odd-values': {
    document: inColumns(column => ({
      ...column,
      values: column.values.map((value, i) => (i % 20 === 0 ? (oddValues[column.name] ?? value) : value)),
    })),
  },
  trickle: { delivery: 'trickle' },
  poison: {
    request: request => {
      const hit = request.points.some(
        point =>
          Math.abs(point.latitude - poisoned.latitude) < 1e-5 &&
          Math.abs(point.longitude - poisoned.longitude) < 1e-5,
      )
      if (hit) throw refused('No data is available for this location.')
      return request
    },
  },
} as const satisfies Record<string, Fault>

export type FaultMode = keyof typeof faults

export const faultModes: readonly FaultMode[] = Object.keys(faults) as FaultMode[]

export const faultOf = (name: FaultMode): Fault => faults[name]
