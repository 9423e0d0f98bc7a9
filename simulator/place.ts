// What a place on the earth is to the weather: two numbers, the same for everybody who asks. What lies there, how high
// and in which time zone, is found out elsewhere.

/** A point in decimal degrees, north and east positive. */
export type Place = { readonly latitude: number; readonly longitude: number }
