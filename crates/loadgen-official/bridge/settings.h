// TestSettings and LogSettings by the names of their fields, whatever fields this revision of LoadGen has.
// Knows no run; only translates words and numbers into LoadGen's own structures.
#ifndef REGATTA_LOADGEN_SETTINGS_H_
#define REGATTA_LOADGEN_SETTINGS_H_

#include <cstdint>
#include <string>

#include "test_settings.h"

struct rlg_settings {
  mlperf::TestSettings test = mlperf::TestSettings();  // value-initialised: LoadGen leaves some fields unset
  mlperf::LogSettings log = mlperf::LogSettings();
  // Never LoadGen's default, which would pick up an audit.config that is in the working directory.
  std::string audit_config;
};

namespace regatta {

int SetWhole(rlg_settings& settings, const std::string& key, uint64_t value);
int SetReal(rlg_settings& settings, const std::string& key, double value);
int SetText(rlg_settings& settings, const std::string& key, const std::string& value);
int GetWhole(const rlg_settings& settings, const std::string& key, uint64_t& value);
int GetReal(const rlg_settings& settings, const std::string& key, double& value);

}  // namespace regatta

#endif
