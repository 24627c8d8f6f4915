/* Decodes a JPEG with libjpeg-turbo to rows of four bytes per pixel, with the settings of OpenCV's imread: the accurate integer
 * DCT, fancy upsampling and block smoothing, which are libjpeg's defaults. Errors return to the caller; nothing is printed.
 * src/decode.rs declares the same structures. */

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
/* After jpeglib.h. */
#include <jerror.h>

/* What the header says, given to the caller before any pixel is decoded. */
struct header {
    uint32_t width, height;
    /* 4 for CMYK and YCCK, which are returned as CMYK; otherwise RGB with an unused fourth byte. */
    uint32_t components;
    /* The data of the first APP1 marker, or NULL. */
    const uint8_t *app1;
    size_t app1_length;
};

/* Findings that matter to the caller. The last one is also set for a progressive image whose scans are not meant to be complete. */
enum { ENDED_EARLY = 1, DAMAGED = 2, INCOMPLETE = 4 };

struct errors {
    struct jpeg_error_mgr base;
    jmp_buf escape;
    uint32_t warnings;
    char *message;
};

/* Returns where the pixels go: 4 * width * height bytes. NULL ends the decoding. Must not unwind. */
typedef uint8_t *allocate(void *context, const struct header *header);

static void escape(j_common_ptr jpeg) {
    struct errors *errors = (struct errors *)jpeg->err;
    errors->base.format_message(jpeg, errors->message);
    longjmp(errors->escape, 1);
}

static void note(j_common_ptr jpeg, int level) {
    struct errors *errors = (struct errors *)jpeg->err;
    if (level >= 0)
        return;
    switch (errors->base.msg_code) {
    case JWRN_JPEG_EOF:
        errors->warnings |= ENDED_EARLY;
        return;
    case JWRN_JFIF_MAJOR: /* An unknown version of the JFIF header, which changes nothing. */
    case JWRN_EXTRANEOUS_DATA: /* Bytes between segments, which libjpeg skips. */
    case JWRN_NOT_SEQUENTIAL: /* Unusual parameters of a scan, which libjpeg replaces by the usual ones. */
    case JWRN_ADOBE_XFORM:
    case JWRN_BOGUS_ICC:
    case JWRN_TOO_MUCH_DATA:
        return;
    default:
        if (!(errors->warnings & DAMAGED))
            errors->base.format_message(jpeg, errors->message);
        errors->warnings |= DAMAGED;
    }
}

static void print_nothing(j_common_ptr jpeg) { (void)jpeg; }

/* Returns whether there was a scan for every component, and all bits of every coefficient of a progressive image. */
static int is_complete(j_decompress_ptr jpeg) {
    for (int component = 0; component < jpeg->num_components; component++) {
        /* The first scan of a component sets its table. */
        if (!jpeg->comp_info[component].quant_table)
            return 0;
        for (int coefficient = 0; jpeg->coef_bits && coefficient < DCTSIZE2; coefficient++) {
            if (jpeg->coef_bits[component][coefficient])
                return 0;
        }
    }
    return 1;
}

/* Returns 0 and the findings, or 1 and libjpeg's message, or 2 when `allocate` returned NULL. `message` has JMSG_LENGTH_MAX bytes. */
int regatta_jpeg_decode(const uint8_t *data, size_t length, allocate *allocate, void *context, uint32_t *findings, char *message) {
    struct jpeg_decompress_struct jpeg;
    struct errors errors;
    memset(&jpeg, 0, sizeof jpeg);
    jpeg.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = escape;
    errors.base.emit_message = note;
    errors.base.output_message = print_nothing;
    errors.warnings = 0;
    errors.message = message;
    if (setjmp(errors.escape)) {
        jpeg_destroy_decompress(&jpeg);
        return 1;
    }
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, data, (unsigned long)length);
    jpeg_save_markers(&jpeg, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = jpeg.num_components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
    struct header header = {
        .width = jpeg.image_width,
        .height = jpeg.image_height,
        .components = (uint32_t)jpeg.num_components,
    };
    for (jpeg_saved_marker_ptr marker = jpeg.marker_list; marker; marker = marker->next) {
        if (marker->marker == JPEG_APP0 + 1) {
            header.app1 = marker->data;
            header.app1_length = marker->data_length;
            break;
        }
    }
    uint8_t *pixels = allocate(context, &header);
    if (!pixels) {
        jpeg_destroy_decompress(&jpeg);
        return 2;
    }
    jpeg_start_decompress(&jpeg);
    while (jpeg.output_scanline < jpeg.output_height) {
        JSAMPROW rows[16];
        JDIMENSION count = 0, left = jpeg.output_height - jpeg.output_scanline;
        for (; count < 16 && count < left; count++)
            rows[count] = pixels + (size_t)(jpeg.output_scanline + count) * jpeg.output_width * 4;
        jpeg_read_scanlines(&jpeg, rows, count);
    }
    *findings = errors.warnings | (is_complete(&jpeg) ? 0 : INCOMPLETE);
    jpeg_destroy_decompress(&jpeg);
    return 0;
}
