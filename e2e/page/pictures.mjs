// Screenshots as small PNG files: the few colors of the page as a palette.

import { writeFileSync } from "node:fs";
import { deflateSync } from "node:zlib";

/** Colors of a palette. */
const COLORS_MAX = 256;

/** Saves what the page shows as an indexed PNG. */
export async function savePicture(page, file) {
  const shot = await page.screenshot({ animations: "disabled" });
  const { width, height, pixels } = await decoded(page, shot);
  const { palette, indices } = indexed(pixels);
  writeFileSync(file, png(width, height, palette, indices));
}

/** The pixels, which Chromium itself decodes. */
async function decoded(page, shot) {
  const image = await page.evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
    const { data } = canvas.getContext("2d").getImageData(0, 0, bitmap.width, bitmap.height);
    let text = "";
    for (let from = 0; from < data.length; from += 32_768) text += String.fromCharCode(...data.subarray(from, from + 32_768));
    return { width: bitmap.width, height: bitmap.height, base64: btoa(text) };
  }, shot.toString("base64"));
  return { ...image, pixels: Buffer.from(image.base64, "base64") };
}

/** The most frequent colors, and for each pixel the nearest of them. */
function indexed(pixels) {
  const counts = new Map();
  for (let at = 0; at < pixels.length; at += 4) {
    const color = pixels.readUInt32BE(at) >>> 8;
    counts.set(color, (counts.get(color) ?? 0) + 1);
  }
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, COLORS_MAX).map(([color]) => color);
  const known = new Map(palette.map((color, index) => [color, index]));
  const nearest = (color) => {
    const parts = (one) => [one >> 16, (one >> 8) & 255, one & 255];
    const [red, green, blue] = parts(color);
    let [best, least] = [0, Infinity];
    palette.forEach((other, index) => {
      const [r, g, b] = parts(other);
      const distance = (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2;
      if (distance < least) [best, least] = [index, distance];
    });
    known.set(color, best);
    return best;
  };
  const indices = Buffer.alloc(pixels.length / 4);
  for (let index = 0; index < indices.length; index += 1) {
    const color = pixels.readUInt32BE(index * 4) >>> 8;
    indices[index] = known.get(color) ?? nearest(color);
  }
  return { palette, indices };
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

function crc32(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return (sum ^ 0xffffffff) >>> 0;
}

function png(width, height, palette, indices) {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colors = Buffer.from(palette.flatMap((color) => [color >> 16, (color >> 8) & 255, color & 255]));
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1) indices.copy(lines, y * (width + 1) + 1, y * width, (y + 1) * width);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), chunk("IHDR", header), chunk("PLTE", colors),
    chunk("IDAT", deflateSync(lines, { level: 9 })), chunk("IEND", Buffer.alloc(0)),
  ]);
}
