// The weather that answers served, each with the body of the provider that said it.

import type { Answer, SaidByProvider } from '../history.ts'
import type { Facts } from './facts.ts'
import { isOfWeather } from './paths.ts'
import { bodiesFor, hasSame, type WeatherBody } from './provider-body.ts'

export type Served = {
  readonly answer: Answer
  readonly body: WeatherBody
  readonly cell: string
  /** What said this weather: of equal bodies the latest. */
  readonly said: SaidByProvider | undefined
}
export type Sourced = Served & { readonly said: SaidByProvider }

const known = new WeakMap<Facts, Served[]>()

export const servedIn = (facts: Facts): Served[] =>
  known.getOrInsertComputed(facts, () => facts.answers.flatMap(answer => servedBy(facts, answer)))
export const sourcedIn = (facts: Facts): Sourced[] =>
  servedIn(facts).filter((served): served is Sourced => served.said !== undefined)

type Located = WeatherBody & { location: { latitude: number; longitude: number } }

/** What an answer says: of a list the weather of each of its places. */
const servedBy = (facts: Facts, answer: Answer): Served[] => {
  if (answer.status !== 200 || answer.method === 'HEAD' || !isOfWeather(answer.path)) return []
  let bodies: (Located | { error: string })[]
  try {
    bodies = [JSON.parse(answer.body)].flat()
  } catch {
    // Promise 2.
    return []
  }
  return bodies.flatMap(body => {
    if ('error' in body) return []
    const { latitude, longitude } = body.location
    const before = bodiesFor(facts.said, latitude, longitude).filter(({ said }) => said.seq < answer.seq)
    const source = before.findLast(element => hasSame(body, element))
    return { answer, body, cell: `${latitude} ${longitude}`, said: source?.said }
  })
}

/** Whether no other body of the provider has the same weather for the place. */
export const isOnlySource = (facts: Facts, { body, cell, said }: Sourced): boolean => {
  const [latitude = 0, longitude = 0] = cell.split(' ').map(Number)
  return bodiesFor(facts.said, latitude, longitude).every(each => each.said === said || !hasSame(body, each))
}
