// A place on the earth: its two coordinates. terrain.ts has its height, zones.ts its time zone.

/** A point in decimal degrees, north and east positive. */
export type Place = { readonly latitude: number; readonly longitude: number }
