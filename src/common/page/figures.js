// Numbers, instants and durations as text, in the digits of the language and in the time zone of the gateway.

/** @typedef {'en' | 'bn'} Language */

/** Stands in place of an unknown value. */
export const unknown = '–'

const locales = { en: 'en-GB', bn: 'bn-BD' }

const units = {
  en: { ms: 'ms', s: 's', min: 'min', h: 'h', d: 'd', B: 'B', KiB: 'KiB', MiB: 'MiB', GiB: 'GiB', mm: 'mm' },
  bn: {
    ms: 'মি.সে.',
    s: 'সেকেন্ড',
    min: 'মিনিট',
    h: 'ঘণ্টা',
    d: 'দিন',
    B: 'বাইট',
    KiB: 'কেবি',
    MiB: 'এমবি',
    GiB: 'জিবি',
    mm: 'মি.মি.',
  },
}

/**
 * @param {Language} language
 * @param {string} timeZone of the IANA database
 */
export const createFigures = (language, timeZone) => {
  const locale = locales[language]
  const unit = units[language]
  /** @param {number} digits */
  const decimals = digits =>
    new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits })
  const byDecimals = [0, 1, 2, 3].map(decimals)
  const percent = new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 1 })
  const short = new Intl.NumberFormat(locale, { notation: 'compact', maximumSignificantDigits: 3 })
  const plain = new Intl.NumberFormat(locale, { useGrouping: false, maximumFractionDigits: 4 })
  /** @type {Intl.DateTimeFormatOptions} */
  const clock = { hourCycle: 'h23', timeZone, hour: '2-digit', minute: '2-digit' }
  const minute = new Intl.DateTimeFormat(locale, clock)
  const second = new Intl.DateTimeFormat(locale, { ...clock, second: '2-digit' })
  const day = new Intl.DateTimeFormat(locale, { timeZone, day: 'numeric', month: 'short' })
  const utcDay = new Intl.DateTimeFormat(locale, { timeZone: 'UTC', day: 'numeric', month: 'short' })
  const dayOfYear = new Intl.DateTimeFormat(locale, { timeZone, dateStyle: 'medium' })
  const dayOf = new Intl.DateTimeFormat('en-CA', { timeZone })

  /** @param {number} value @param {number} [digits] */
  const number = (value, digits = 0) => (byDecimals[digits] ?? decimals(digits)).format(value)

  /** Three significant digits, so that small and large values are as wide. @param {number} value */
  const measured = value => number(value, value >= 99.95 || value === 0 ? 0 : value >= 9.995 ? 1 : 2)

  /** @param {number} value in seconds */
  const duration = value => {
    const whole = Math.max(0, Math.round(value))
    if (whole < 60) return `${number(whole)} ${unit.s}`
    const minutes = Math.floor(whole / 60)
    if (minutes < 60) return `${number(minutes)} ${unit.min}`
    const hours = Math.floor(minutes / 60)
    if (hours < 48) {
      const rest = minutes % 60
      return rest === 0
        ? `${number(hours)} ${unit.h}`
        : `${number(hours)} ${unit.h} ${number(rest)} ${unit.min}`
    }
    return `${number(Math.floor(hours / 24))} ${unit.d}`
  }

  /** @template Value @param {(value: Value) => string} write @returns {(value: Value | null | undefined) => string} */
  const orUnknown = write => value => (value === null || value === undefined ? unknown : write(value))

  return {
    language,
    timeZone,
    count: orUnknown((/** @type {number} */ value) => number(Math.round(value))),
    /** A count with few digits, such as 12.3K. */
    short: orUnknown((/** @type {number} */ value) => short.format(value)),
    /** A number without separators, such as a part of a coordinate. */
    plain: orUnknown((/** @type {number} */ value) => plain.format(value)),
    /** A rate or another measured value. */
    measured: orUnknown(measured),
    /** A share from 0 to 1 as percent. */
    share: orUnknown((/** @type {number} */ value) => percent.format(value)),
    /** A short time in seconds, in ms or s. */
    latency: orUnknown((/** @type {number} */ value) =>
      value < 1 ? `${measured(value * 1000)} ${unit.ms}` : `${measured(value)} ${unit.s}`,
    ),
    /** A duration in seconds, from seconds to days. */
    duration: orUnknown(duration),
    bytes: orUnknown((/** @type {number} */ value) => {
      const power = Math.min(3, Math.floor(Math.log2(Math.max(1, value)) / 10))
      const name = [unit.B, unit.KiB, unit.MiB, unit.GiB][power] ?? ''
      return `${power === 0 ? number(value) : measured(value / 1024 ** power)} ${name}`
    }),
    degrees: orUnknown((/** @type {number} */ value) => `${number(value, 1)} °C`),
    millimetres: orUnknown((/** @type {number} */ value) => `${number(value, 1)} ${unit.mm}`),
    /** The time of day of an instant; with its day where that is not the day of `now`, and with its year likewise. */
    instant: (/** @type {string | null | undefined} */ iso, /** @type {string} */ now, isExact = false) => {
      if (!iso) return unknown
      const at = new Date(iso)
      const time = (isExact ? second : minute).format(at)
      const [own, other] = [dayOf.format(at), dayOf.format(new Date(now))]
      if (own === other) return time
      return `${(own.slice(0, 4) === other.slice(0, 4) ? day : dayOfYear).format(at)}, ${time}`
    },
    /** An instant with its day and year. */
    dateTime: (/** @type {string} */ iso, isExact = false) => {
      const at = new Date(iso)
      return `${dayOfYear.format(at)}, ${(isExact ? second : minute).format(at)}`
    },
    /** A day given as YYYY-MM-DD. */
    day: (/** @type {string} */ iso) => utcDay.format(new Date(`${iso}T00:00Z`)),
    /** The time of day of an instant in ms. */
    timeOfDay: (/** @type {number} */ ms, isExact = false) => (isExact ? second : minute).format(ms),
  }
}

/** @typedef {ReturnType<typeof createFigures>} Figures */

/** Seconds from one instant to the other. @param {string} from @param {string} to */
export const secondsBetween = (from, to) => (Date.parse(to) - Date.parse(from)) / 1000
