// The nearest place to a point by great circles: a k-d tree of points on the unit sphere, which also works across 180°.

import type { Location } from './location-schema.ts'

/** In decimal degrees. */
export type Point = { readonly latitude: number; readonly longitude: number }

type OnSphere = readonly [x: number, y: number, z: number]

type Node = {
  readonly location: Location
  readonly at: OnSphere
  readonly axis: 0 | 1 | 2
  readonly below: Node | undefined
  readonly above: Node | undefined
}

type Found = { readonly location: Location; readonly squared: number }

const meanRadiusKm = 6_371.0088

const onSphere = ({ latitude, longitude }: Point): OnSphere => {
  const [north, east] = [(latitude * Math.PI) / 180, (longitude * Math.PI) / 180]
  return [Math.cos(north) * Math.cos(east), Math.cos(north) * Math.sin(east), Math.sin(north)]
}

const squaredBetween = (a: OnSphere, b: OnSphere): number =>
  (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2

/** The distance along the ground. */
export const kilometresBetween = (one: Point, other: Point): number =>
  2 * meanRadiusKm * Math.asin(Math.min(1, Math.sqrt(squaredBetween(onSphere(one), onSphere(other))) / 2))

const grow = (places: readonly Pick<Node, 'location' | 'at'>[], depth = 0): Node | undefined => {
  const axis = (depth % 3) as Node['axis']
  const sorted = places.toSorted((a, b) => a.at[axis] - b.at[axis])
  const middle = sorted.length >> 1
  const place = sorted[middle]
  return (
    place && {
      ...place,
      axis,
      below: grow(sorted.slice(0, middle), depth + 1),
      above: grow(sorted.slice(middle + 1), depth + 1),
    }
  )
}

const search = (node: Node | undefined, at: OnSphere, best?: Found): Found | undefined => {
  if (!node) return best
  const { location, axis, below, above } = node
  const squared = squaredBetween(node.at, at)
  // Of two at one point always the same.
  const isNearer =
    !best || squared < best.squared || (squared === best.squared && location.id < best.location.id)
  const past = at[axis] - node.at[axis]
  const nearer = search(past < 0 ? below : above, at, isNearer ? { location, squared } : best)
  return nearer && past ** 2 > nearer.squared ? nearer : search(past < 0 ? above : below, at, nearer)
}

export const createNearest = (places: readonly Location[]): ((point: Point) => Location | undefined) => {
  const root = grow(places.map(location => ({ location, at: onSphere(location) })))
  return point => search(root, onSphere(point))?.location
}
