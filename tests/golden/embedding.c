// e_2_2_4: in0 in1 out0
void e_2_2_4(float* restrict data0, int* restrict data1, float* restrict data2) {
  for (int ridx0 = 0; ridx0 < 2; ridx0++) {
    for (int ridx1 = 0; ridx1 < 2; ridx1++) {
      int val1 = data1[((ridx0*2)+ridx1)];
      int alu2 = ((val1<0)?(val1+10):val1);
      _Bool alu3 = ((-1<alu2)&(alu2<10));
      for (int ridx2 = 0; ridx2 < 4; ridx2++) {
        float val4 = data0[(((alu3?alu2:0)*4)+ridx2)];
        data2[((ridx0*8)+((ridx1*4)+ridx2))] = (alu3?val4:0.0f);
      }
    }
  }
}
