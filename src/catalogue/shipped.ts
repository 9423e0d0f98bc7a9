// The places that come with the product. A test checks them by every rule, so that a start does not have to; the same test
// names the checksum to state here once locations.json was built anew.

import type { Bounds } from './location-schema.ts'

export const shipped: { readonly sha256: string; readonly bounds: Bounds } = {
  sha256: 'f44f67c243182fefb7dcbd4e3d971a3676797d7efd90ebc75581bd54dca6cdb6',
  bounds: { south: 20, north: 27, west: 87.5, east: 93 },
}

/** Whether places with this checksum are those that come with the product, which keep every rule within these bounds. */
export const isShipped = (sha256: string, { south, north, west, east }: Bounds): boolean => {
  const checked = shipped.bounds
  return (
    sha256 === shipped.sha256 &&
    south <= checked.south &&
    north >= checked.north &&
    west <= checked.west &&
    east >= checked.east
  )
}
