//! Classes of characters as the reference's tokenizers define them, under Python 3.11.

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};

use super::newer_characters::is_newer;

/// Whether `str.split` separates words at `c`.
pub fn is_python_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Whether a regular expression's `\w` matches `c`: the classes L and N of Unicode, which are what remains without the others.
pub fn is_word(c: char) -> bool {
    use GeneralCategoryGroup::{Mark, Other, Punctuation, Separator, Symbol};
    let group = c.general_category_group();
    c == '_' || !(matches!(group, Mark | Other | Punctuation | Separator | Symbol) || is_newer(c))
}

/// Whether the tokenizer replaces `c` by a space.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r') || c.general_category() == GeneralCategory::SpaceSeparator
}

/// Whether the tokenizer removes `c`: control and format characters, and those without a meaning.
pub(super) fn is_removed(c: char) -> bool {
    c == '\u{fffd}'
        || is_newer(c)
        || (!matches!(c, '\t' | '\n' | '\r') && c.general_category_group() == GeneralCategoryGroup::Other)
}

/// Whether `c` is a separate token because of its class.
pub(super) fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() || c.general_category_group() == GeneralCategoryGroup::Punctuation
}

/// Whether `c` is removed with the accents.
pub(super) fn is_accent(c: char) -> bool {
    c.general_category() == GeneralCategory::NonspacingMark
}

/// Whether `c` is a separate token because it is a Chinese character.
pub(super) fn is_ideograph(c: char) -> bool {
    matches!(
        u32::from(c),
        0x3400..=0x4dbf
            | 0x4e00..=0x9fff
            | 0xf900..=0xfaff
            | 0x2_0000..=0x2_a6df
            | 0x2_a700..=0x2_b73f
            | 0x2_b740..=0x2_b81f
            | 0x2_b820..=0x2_ceaf
            | 0x2_f800..=0x2_fa1f
    )
}
