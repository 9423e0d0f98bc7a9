// The terms of the service that speaks this protocol: its name, its licence and its plans, for people who read them in the API
// reference and in reports. What a request has to keep to is in limits.ts.

import { freeLimits } from './limits.ts'

export const serviceName = 'Open-Meteo'

export const serviceUrl = 'https://api.open-meteo.com'

/** Of the weather: name the service where it is shown. */
export const licence = { name: 'CC BY 4.0', identifier: 'CC-BY-4.0' } as const

/** Limits in the provider's weight; null for none. */
export type Plan = {
  readonly name: string
  readonly minute: number | null
  readonly hour: number | null
  readonly day: number | null
  readonly month: number | null
}

export const pricingPage = 'open-meteo.com/en/pricing'

// By the pricing page and the terms, as known in 2026-11: look there before you buy. The free plan is for non-commercial use; the
// paid ones are counted by the month alone, and the largest begins at its figure.
export const plans: readonly Plan[] = [
  { name: 'free', ...freeLimits, month: 300_000 },
  { name: 'standard', minute: null, hour: null, day: null, month: 1_000_000 },
  { name: 'professional', minute: null, hour: null, day: null, month: 5_000_000 },
  { name: 'enterprise', minute: null, hour: null, day: null, month: 50_000_000 },
]
