// What a place on the earth is to the weather.

/** A point in decimal degrees, north and east positive. */
export type Place = { readonly latitude: number; readonly longitude: number }
